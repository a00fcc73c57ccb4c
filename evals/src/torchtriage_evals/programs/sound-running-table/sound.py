"""A layer that keeps a running mean of its inputs, and a mask that is made once and not saved."""

import torch
from torch import nn


class Centred(nn.Module):
    def __init__(self, width=4, rate=0.1):
        super().__init__()
        self.rate = rate
        self.scale = nn.Parameter(torch.ones(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("mask", torch.arange(width) % 2 == 0, persistent=False)

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.flatten(0, -2).mean(0), self.rate)
        return torch.where(self.mask, self.scale * (x - self.mean), x)
