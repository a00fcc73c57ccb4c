"""A state of the module's own that goes through a local name."""

import torch
from torch import nn


class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(6, 12, batch_first=True)
        self.read = nn.Linear(12, 2)
        self._memory = None

    def forward(self, x):
        seen, (h, c) = self.cell(x, self._memory)
        self._memory = (h, c)  # expect: hidden-state-not-detached
        return self.read(seen)


class Careful(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTM(6, 12, batch_first=True)
        self.read = nn.Linear(12, 2)
        self._memory = None

    def forward(self, x):
        seen, memory = self.cell(x, self._memory)
        self._memory = tuple(each.detach() for each in memory)
        return self.read(seen)


def fit(parts):
    for net in (Tracker(), Careful()):
        opt = torch.optim.Adam(net.parameters())
        for x, y in parts:
            opt.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            opt.step()


def fit_tracker(parts):
    net = Tracker()
    opt = torch.optim.Adam(net.parameters())
    for x, y in parts:
        opt.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        opt.step()


def fit_careful(parts):
    net = Careful()
    opt = torch.optim.Adam(net.parameters())
    for x, y in parts:
        opt.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        opt.step()
