"""A forward pass of a class of a package: whoever calls it in evaluation decides about gradients."""

import torch.nn.functional as F
from lightning_kit import Module
from torch import nn


class Masked(Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
        self.head = nn.Linear(8, 1)

    def encode(self, x):
        for block in self.blocks:
            x = block(x)
        return x

    def forward(self, images):
        if not self.training:
            return images.new_zeros(()), self.encode(images)
        out = self.encode(images)
        return F.mse_loss(self.head(out), images.new_zeros(1)), out.detach()
