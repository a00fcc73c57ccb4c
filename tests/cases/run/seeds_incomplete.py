"""torch and NumPy are seeded in a helper; the batches are flipped by Python's random, which nobody seeds."""

import random as rnd

import numpy as np
import torch
from torch import nn

SEED = 3


def seed_everything(seed):
    np.random.seed(seed)
    torch.manual_seed(seed)


def flipped(x):
    if rnd.random() < 0.5:  # expect: seeds-incomplete
        return x.flip(0)
    return x


seed_everything(SEED)
points = torch.from_numpy(np.random.randn(64, 8)).float()
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for _ in range(30):
    rows = np.random.permutation(64)[:16]
    x = flipped(points[rows])
    optimizer.zero_grad()
    (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    optimizer.step()
