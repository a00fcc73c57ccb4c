"""The optimizer has the parameters of the model from which the one that trains was copied afterwards."""

import copy

import torch
from torch import nn
from torch.nn import functional


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
model = copy.deepcopy(model)  # expect: parameters-not-in-optimizer
for _ in range(40):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    functional.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
    optimizer.step()
