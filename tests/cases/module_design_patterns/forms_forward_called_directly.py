"""Forms of forward-called-directly and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


from torch.nn.parallel import DistributedDataParallel as DDP
def main2(rank, loader):
    model = DDP(nn.Linear(4, 2).to(rank), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        out = model.forward(x.to(rank))  # expect: forward-called-directly
        opt.zero_grad()
        F.cross_entropy(out, y.to(rank)).backward()
        opt.step()


from torch.nn.parallel import DistributedDataParallel as DDP
def main_right2(rank, loader):
    model = DDP(nn.Linear(4, 2).to(rank), device_ids=[rank])
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        out = model(x.to(rank))
        opt.zero_grad()
        F.cross_entropy(out, y.to(rank)).backward()
        opt.step()


class Sub4(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.utils.spectral_norm(nn.Linear(4, 4))
        self.dec = nn.Linear(4, 4)
    def forward(self, x):
        return self.dec(self.enc.forward(x))  # expect: forward-called-directly


class SubRight4(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.utils.spectral_norm(nn.Linear(4, 4))
        self.dec = nn.Linear(4, 4)
    def forward(self, x):
        return self.dec(self.enc(x))
