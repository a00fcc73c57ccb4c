"""Checkpointing that partial() prepares."""

from functools import partial
import torch
from torch.utils.checkpoint import checkpoint


class Enc(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers
        self.wrap = partial(checkpoint, preserve_rng_state=True)  # expect: checkpoint-reentrant-unset

    def forward(self, x):
        for l in self.layers:
            x = self.wrap(l, x)
        return x
