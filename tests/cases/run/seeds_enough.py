"""Draws that look unseeded: from a generator of its own, for a name, of what only prints, before the training, and from
a generator whose state is restored.
"""

import random

import numpy as np
import torch
from torch import nn

run = f"run-{random.randint(0, 9999)}"
torch.manual_seed(0)
np.random.set_state(np.random.RandomState(3).get_state())
own = random.Random(0)


def show(points):
    print(run, points[random.randrange(len(points))].shape)


points = torch.randn(64, 8)
model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for step in range(30):
    x = points[np.random.permutation(64)[:16]] + own.gauss(0, 0.1)
    optimizer.zero_grad()
    (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    optimizer.step()
    if step % 2 == 0:
        show(points)
