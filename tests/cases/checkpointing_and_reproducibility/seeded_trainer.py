"""A trainer that nothing in this file makes: it seeds torch and draws from NumPy; a worker seeds for itself."""

import random

import numpy as np
import torch
from torch import nn


class Trainer:
    def __init__(self, net: nn.Module, seed: int):
        torch.manual_seed(seed)
        self.net, self.opt = net, torch.optim.Adam(net.parameters())

    def fit(self, x, y, steps):
        for _ in range(steps):
            picked = np.random.choice(len(x), 32)  # expect: seeds-incomplete
            self.opt.zero_grad()
            nn.functional.mse_loss(self.net(x[picked]), y[picked]).backward()
            self.opt.step()


def seed_worker(worker_id):
    np.random.seed(torch.initial_seed() % 2**32)
    random.seed(torch.initial_seed())


def helper(items):
    """Whoever calls this may have seeded everything."""
    random.shuffle(items)
    return items
