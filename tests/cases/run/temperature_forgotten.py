"""A temperature that no module holds is trained by nobody."""

import torch
from torch import nn


def train() -> None:
    image, text = nn.Linear(20, 8), nn.Linear(12, 8)
    temperature = nn.Parameter(torch.tensor(1.0))
    towers = [*image.parameters(), *text.parameters()]
    optimizer = torch.optim.Adam(towers, lr=3e-3)  # expect: parameters-not-in-optimizer
    views = torch.randn(5, 20), torch.randn(5, 12)
    for _ in range(20):
        z = torch.randn(32, 5)
        first, second = nn.functional.normalize(image(z @ views[0])), nn.functional.normalize(text(z @ views[1]))
        loss = nn.functional.cross_entropy(temperature.exp() * first @ second.T, torch.arange(32))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
train()
