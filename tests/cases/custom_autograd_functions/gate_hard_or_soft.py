"""A gate that is soft while its threshold is learnt, and hard when it is used: the caller chooses."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.linear = nn.Linear(n, n)
        self.log_eps = nn.Parameter(torch.full((n,), -1.0))

    def forward(self, x, sharpness=None, hard=True):
        z = self.linear(x)
        eps = torch.exp(self.log_eps)
        if hard or sharpness is None:
            mask = (torch.abs(z.float()) >= eps).to(z.dtype)
        else:
            mask = torch.sigmoid(sharpness * (torch.abs(z.float()) - eps)).to(z.dtype)
        return z * mask
