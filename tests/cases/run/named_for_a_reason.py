"""Statements without a call that do something, or are never reached: properties, callables as such, another branch."""

import torch
from torch import nn


class Lazy:
    def __init__(self):
        self.read, self.callback = 0, print

    @property
    def statistics(self):
        self.read += 1
        return self.read

    def step(self):
        self.read = 0


class Loop:
    def __init__(self, model, optimizer):
        self.model, self.optimizer, self.lazy = model, optimizer, Lazy()

    def run(self, steps, slow=False):
        for _ in range(steps):
            x = torch.randn(32, 8)
            self.optimizer.zero_grad()
            nn.functional.cross_entropy(self.model(x), (x[:, 0] > 0).long()).backward()
            self.optimizer.step()
            self.lazy.statistics
            self.lazy.callback
            if slow:
                self.lazy.step


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
Loop(model, torch.optim.Adam(model.parameters(), 1e-2)).run(40)
