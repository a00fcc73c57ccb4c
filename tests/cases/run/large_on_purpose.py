"""What is to be as large as it can: the variance along a direction, and the distance of two embeddings from each other."""

import torch
from torch import nn

torch.manual_seed(0)
direction = nn.Linear(8, 1, bias=False)
optimizer = torch.optim.SGD(direction.parameters(), lr=0.05)
scales = torch.linspace(0.5, 2.0, 8)
for _ in range(60):
    loss = -(direction(torch.randn(64, 8) * scales) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        direction.weight /= direction.weight.norm()

first, second = nn.Linear(8, 4), nn.Linear(8, 4)
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.001)
for _ in range(60):
    x = torch.randn(64, 8)
    loss = -((first(x) - second(x)) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
