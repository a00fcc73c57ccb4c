"""Python and NumPy are seeded; torch, which makes the weights, is not; and a generator has no seed."""

import random

import numpy as np
import torch
from torch import nn

random.seed(7)  # expect: seeds-incomplete
np.random.seed(7)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        return self.body(x)


def train(steps):
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters())
    rng = np.random.default_rng()  # expect: seeds-incomplete
    for _ in range(steps):
        x = torch.as_tensor(rng.normal(size=(8, 4)), dtype=torch.float32)
        optimizer.zero_grad()
        policy(x).square().mean().backward()
        optimizer.step()


train(100)
