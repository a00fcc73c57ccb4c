"""Layers that learn nothing, since forward rounds or compares what they give."""

import torch
from torch import nn


class Levels(nn.Module):
    def __init__(self, width, levels=8):
        super().__init__()
        self.encode = nn.Linear(width, width)
        self.decode = nn.Linear(width, width)
        self.levels = levels

    def forward(self, x):
        z = torch.sigmoid(self.encode(x)) * self.levels
        code = torch.round(z)  # expect: no-gradient-by-design
        return self.decode(code / self.levels)


class HardGate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, 1)
        self.body = nn.Linear(width, width)

    def forward(self, x):
        keep = (self.gate(x).sigmoid() > 0.5).float()  # expect: no-gradient-by-design
        return self.body(x) * keep


class Binary(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.Tanh())
        self.head = nn.Linear(width, width)

    def bits(self, x):
        return torch.sign(self.inner(x))  # expect: no-gradient-by-design

    def forward(self, x):
        return self.head(self.bits(x))


class StraightThrough(nn.Module):
    """The value is rounded, the gradient goes past the rounding."""

    def __init__(self, width):
        super().__init__()
        self.encode = nn.Linear(width, width)

    def forward(self, x):
        z = self.encode(x)
        return z + (torch.round(z) - z).detach()


class SoftGate(nn.Module):
    """The comparison scales a gate that has a gradient."""

    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, 1)
        self.body = nn.Linear(width, width)

    def forward(self, x):
        gate = self.gate(x).sigmoid()
        return self.body(x) * gate * (gate > 0.5).float()


class WithMargin(nn.Module):
    """What is rounded is one of two results; the other trains the layer."""

    def __init__(self, width):
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, x):
        score = self.score(x)
        return score.round(), score


class RoundedWhenUsed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, x):
        score = self.score(x)
        if not self.training:
            score = score.round()
        return score


class TrainedElsewhere(nn.Module):
    """The layer learns from logits(), forward answers."""

    def __init__(self, width):
        super().__init__()
        self.score = nn.Linear(width, 1)

    def logits(self, x):
        return self.score(x)

    def forward(self, x):
        return torch.round(self.score(x).sigmoid())


def train(batches, width=16):
    parts = (Levels, HardGate, Binary, StraightThrough, SoftGate, RoundedWhenUsed, nn.Linear)
    net = nn.Sequential(*[part(width) for part in parts[:-1]])
    optimizer = torch.optim.Adam(net.parameters())
    for x, y in batches:
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
