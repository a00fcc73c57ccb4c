"""A context that seeds: as it should be."""

import numpy as np
import torch
from torch import nn


class Trial:
    def __init__(self, seed):
        self.seed = seed

    def __enter__(self):
        torch.manual_seed(self.seed)
        np.random.seed(self.seed)
        return self

    def __exit__(self, *a):
        return False


def bootstrap(n):
    return np.random.choice(n, n)


def main(x, y):
    for seed in range(5):
        with Trial(seed):
            idx = bootstrap(len(x))
            net = nn.Linear(x.shape[1], 1)
            opt = torch.optim.Adam(net.parameters())
            for _ in range(10):
                opt.zero_grad()
                nn.functional.mse_loss(net(x[idx]), y[idx]).backward()
                opt.step()
