"""A module from which another one is written out: its constructor names that of the base, without the object."""

import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.size = size


class Scaled(Rotary):
    def __init__(self, size: int):
        nn.Module.__init__()
        self.size = size
        self.scale = nn.Buffer(torch.ones(size), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


class Unmade(nn.Module):
    def __init__(self, size: int):
        self.layer = nn.Linear(size, size)  # expect: super-init-missing
        nn.Module.__init__(self)
