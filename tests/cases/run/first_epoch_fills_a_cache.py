"""What is made by slow code is made once: later epochs find it in a dictionary."""

import torch
from torch import nn

made: dict[int, torch.Tensor] = {}


def sample(number: int) -> torch.Tensor:
    if number not in made:
        made[number] = torch.tensor([[(7 * x * y + number) % 11 / 11 for x in range(40)] for y in range(40)])
    return made[number]


torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(1600, 64), nn.ReLU(), nn.Linear(64, 2))
optimizer = torch.optim.Adam(model.parameters(), 0.001)
for step in range(200):
    numbers = [(step * 8 + k) % 200 for k in range(8)]
    batch = torch.stack([sample(number) for number in numbers])
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(batch), torch.tensor([number % 11 // 6 for number in numbers])).backward()
    optimizer.step()
