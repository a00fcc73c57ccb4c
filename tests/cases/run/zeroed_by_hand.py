"""A function that makes ready for the next step runs before this one: it clears each gradient itself."""

import torch
from torch import nn
from torch.nn import functional


def freshen(parameters) -> None:
    for parameter in parameters:
        parameter.grad = None  # expect: zeroed-before-step


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(30):
    x = torch.randn(32, 8)
    functional.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
    freshen(model.parameters())
    optimizer.step()
