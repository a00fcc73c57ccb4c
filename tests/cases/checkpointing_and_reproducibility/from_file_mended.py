"""A class method that loads what it makes: as it should be."""

import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, o, a):
        super().__init__()
        self.l = nn.Linear(o, a)

    @classmethod
    def from_file(cls, path, o, a):
        policy = cls(o, a)
        policy.load_state_dict(torch.load(path, weights_only=True), strict=True)
        return policy

    def forward(self, x):
        return self.l(x)
