"""Parameters that join late or are left out, through methods, builders and records."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


class Tasks:
    def __init__(self, width):
        self.model = nn.ModuleDict({"body": nn.Linear(32, width), "head": nn.Linear(width, 10)})
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.width = width

    def begin(self, classes):
        self.model["head"] = nn.Linear(self.width, classes)  # expect: parameters-not-in-optimizer

    def learn(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            F.cross_entropy(self.model["head"](self.model["body"](x).relu()), y).backward()
            self.optimizer.step()


@dataclass
class Pair:
    encoder: nn.Module
    head: nn.Module
    optimizer: torch.optim.Optimizer


def pair():
    encoder, head = nn.Sequential(nn.Flatten(), nn.Linear(784, 64)), nn.Sequential(nn.Linear(64, 64), nn.ReLU())
    return Pair(encoder, head, torch.optim.SGD(encoder.parameters(), lr=0.3))  # expect: parameters-not-in-optimizer


def contrast(loader):
    parts = pair()
    for one, other in loader:
        loss = F.cross_entropy(parts.head(parts.encoder(one)) @ parts.encoder(other).t(), torch.arange(len(one)))
        parts.optimizer.zero_grad()
        loss.backward()
        parts.optimizer.step()


def by_part(loader):
    model = nn.ModuleDict({"trunk": nn.Linear(8, 64), "heads": nn.Linear(64, 3)})
    optims = [torch.optim.SGD(model.trunk.parameters(), lr=0.1), torch.optim.Adam(model.heads.parameters())]
    for x, y in loader:
        loss = F.mse_loss(model["heads"](model["trunk"](x)), y)
        for each in optims:
            each.zero_grad()
        loss.backward()
        for each in optims:
            each.step()
