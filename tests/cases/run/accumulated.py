"""Deliberate accumulation over four micro-batches, with both ways of zeroing."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for number in range(100):
    (model(torch.randn(16, 8)).pow(2).mean() / 4).backward()
    if number % 4 == 3:
        optimizer.step()
        optimizer.zero_grad(set_to_none=number % 8 == 3)
