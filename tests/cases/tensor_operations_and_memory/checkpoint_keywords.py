"""A keyword that checkpoint() hands on, which torch refuses without use_reentrant=False."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Stack(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))

    def forward(self, x: torch.Tensor, scale=None):
        for layer in self.layers:

            def run(*values):
                return layer(*values)

            x = checkpoint(run, x, scale=scale)
        return x
