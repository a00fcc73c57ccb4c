"""Parameters with a method of their own that fills them."""

import torch
import torch.nn as nn


class Bilinear(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Parameter(torch.empty(width, width))
        self.reset_parameters()

    def reset_parameters(self):
        for name, value in vars(self)["_parameters"].items():
            value.data.normal_(0, 0.02)

    def forward(self, a, b):
        return a @ self.mix @ b
