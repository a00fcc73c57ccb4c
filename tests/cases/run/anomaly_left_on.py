"""Anomaly mode was switched on for a NaN that was mended long ago."""

import torch
from torch import nn

torch.manual_seed(0)
torch.autograd.set_detect_anomaly(True)  # expect: debug-left-on
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for _ in range(60):
    inputs = torch.randn(8, 16)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), inputs[:, :1]).backward()
    optimizer.step()
