"""A model that its object loads bare, wraps and saves."""

import os

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)

    def forward(self, x):
        return self.body(x)


class T:
    def __init__(self, rank, path):
        self.path = path
        self.model = Net().to(rank)
        if os.path.exists(path):
            self.model.load_state_dict(torch.load(path, map_location="cpu")["model"])  # expect: keys-mismatched
        self.model = DistributedDataParallel(self.model, device_ids=[rank])
        self.rank = rank

    def save(self, epoch):
        if self.rank == 0:
            sd = self.model.state_dict()
            torch.save({"model": sd, "epoch": epoch}, self.path)
