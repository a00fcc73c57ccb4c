"""Methods that are named and not called."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn, optim


def validate(model: nn.Module, loader):
    model.eval  # expect: method-not-called
    hits = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
    model.train  # expect: method-not-called
    return hits


def without_parentheses(model: nn.Module, loader, optimizer: optim.Optimizer):
    for x, y in loader:
        optimizer.zero_grad  # expect: method-not-called
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()


class Looped:
    def __init__(self, model: nn.Module):
        self.model = model
        self.optimizer = optim.SGD(self.model.parameters(), lr=0.1)

    def update(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        self.optimizer.zero_grad()
        loss.backward  # expect: method-not-called
        self.optimizer.step()
        dist.barrier  # expect: method-not-called
        torch.cuda.synchronize  # expect: method-not-called
        return loss.item()
