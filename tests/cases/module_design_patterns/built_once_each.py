"""Two objects build a layer each, once."""

import torch
from torch import nn


class Wrapper(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.net = net
        self.head = None

    def _head(self, hidden: torch.Tensor):
        if self.head is None:
            self.head = nn.Sequential(nn.Linear(hidden.shape[1], 8), nn.ReLU(), nn.Linear(8, 4)).to(hidden)
        return self.head

    def forward(self, x: torch.Tensor):
        hidden = self.net(x)
        return self._head(hidden)(hidden)


class Pair(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.left = Wrapper(net)
        self.right = Wrapper(net)
        self.forward(torch.randn(2, 16))

    def forward(self, x: torch.Tensor):
        return (self.left(x) - self.right(x)).mean()
