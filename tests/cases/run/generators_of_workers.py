"""Generators that a dataset holds and that are well: seeded anew in each worker or for each sample, used for the split
only, for a validation only, or read without workers.
"""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Noisy(Dataset):
    def __init__(self, points, rng):
        self.points, self.rng = points, rng

    def __len__(self):
        return len(self.points)

    def __getitem__(self, index):
        return self.points[index] + self.rng.normal(0, 0.1), self.points[index].sum()


class BySample(Noisy):
    def __getitem__(self, index):
        self.rng.seed(index)
        return self.points[index] + self.rng.gauss(0, 0.1), self.points[index].sum()


class Chosen(Noisy):
    """The generator chose the points, and has nothing more to do."""

    def __init__(self, points, rng):
        super().__init__(points[rng.permutation(len(points))[:16]], rng)

    def __getitem__(self, index):
        return self.points[index], self.points[index].sum()


def seed_worker(_number):
    about = get_worker_info()
    about.dataset.rng = np.random.default_rng(about.seed)


def seed_in_place(number):
    get_worker_info().dataset.rng.seed(torch.initial_seed() % 2**32)


torch.manual_seed(0)
points = torch.randn(16, 8)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
fresh = np.random.default_rng
for loader in (
    DataLoader(Noisy(points, fresh(0)), 8, num_workers=2, worker_init_fn=seed_worker),
    DataLoader(Noisy(points, np.random.RandomState(0)), 8, num_workers=2, worker_init_fn=seed_in_place),
    DataLoader(BySample(points, random.Random(0)), 8, num_workers=2),
    DataLoader(Chosen(points, fresh(0)), 8, num_workers=2),
    DataLoader(Noisy(points, fresh(0)), 8),
):
    for x, y in loader:
        optimizer.zero_grad()
        (model(x.float()).squeeze(1) - y).pow(2).mean().backward()
        optimizer.step()
with torch.no_grad():
    for x, y in DataLoader(Noisy(points, fresh(0)), 8, num_workers=2):
        print((model(x.float()).squeeze(1) - y).pow(2).mean().item())
