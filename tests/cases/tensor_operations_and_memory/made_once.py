import torch
from torch import nn
from torch.utils.data import DataLoader

from functools import lru_cache


@lru_cache(maxsize=8)
def causal(n, device):
    return torch.ones(n, n).tril().to(device)


class Attn(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None
        self.cache = {}
        self.q = nn.Linear(8, 8)

    def positions(self, n, device):
        if n not in self.cache:
            self.cache[n] = torch.arange(n).to(device)
        return self.cache[n]

    def forward(self, x):
        device = x.device
        if self.mask is None:
            self.mask = torch.ones(5, 5).to(device)
        if self.mask.size(0) < x.size(1):
            self.mask = torch.ones(x.size(1), x.size(1)).to(device)
        if not hasattr(self, "table"):
            self.table = torch.zeros(4).to(device)
        try:
            pos = self.cache["p"]
        except KeyError:
            pos = self.cache["p"] = torch.arange(9).to(device)
        return self.q(x) * causal(3, device) + pos + self.positions(4, device)
