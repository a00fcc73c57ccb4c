"""zero_grad is called by way of a string."""

import torch
from torch import nn


def train(model: nn.Module, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    name = "zero_grad"
    for x, y in loader:
        getattr(optimizer, name)()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
