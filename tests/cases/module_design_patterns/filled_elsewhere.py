"""Parameters that are filled by going through all of them, or by the class that derives from this one."""

import math

import torch
import torch.nn as nn

from library import Base


class Cell(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w_in = nn.Parameter(torch.empty(4 * width, width))
        self.w_out = nn.Parameter(torch.Tensor(4 * width, width))
        bound = 1.0 / math.sqrt(width)
        for weight in self.parameters():
            weight.data.uniform_(-bound, bound)

    def forward(self, x):
        return x @ self.w_in.t() + x @ self.w_out.t()


class Derived(Base):
    def __init__(self, width):
        super().__init__()
        self.table = nn.Parameter(torch.empty(width, width))

    def forward(self, x):
        return x @ self.table
