"""Modules that are seeded by name."""

import importlib

import numpy as np
import torch
from torch import nn

torch.manual_seed(1)
for name in ("random", "numpy.random"):
    importlib.import_module(name).seed(1)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for _i in np.random.permutation(10):
    opt.zero_grad()
    net(torch.randn(4, 3)).sum().backward()
    opt.step()
