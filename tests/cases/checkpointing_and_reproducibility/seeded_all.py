"""Everything that is drawn from is seeded, or nothing claims to be."""

import random

import numpy as np
import torch
from torch import nn


def seed_all(seed: int):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def main(files):
    seed_all(0)
    random.shuffle(files)
    order = np.random.permutation(len(files))
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for index in order:
        optimizer.zero_grad()
        model(torch.randn(2, 4) + index).mean().backward()
        optimizer.step()


main(list("abc"))
