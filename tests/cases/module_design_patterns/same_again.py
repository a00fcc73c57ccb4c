"""A parameter in its own format, a forward that subclasses have, and a tuple with a star."""

import torch
from torch import nn


class Scan(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.skip = nn.Parameter(torch.ones(width)).float()

    def forward(self, x):
        return x * self.skip


class Base(nn.Module):
    def evaluate(self, x):
        return self.forward(x)[0]


class Mixed(nn.Module):
    def forward(self, *inputs):
        *predictions, target = inputs
        return predictions[0] - target
