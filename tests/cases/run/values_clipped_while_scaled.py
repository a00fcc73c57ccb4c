"""Clipping by value before unscale_, which comes too late."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(20):
    optimizer.zero_grad()
    scaler.scale(model(torch.randn(16, 8)).pow(2).mean()).backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)  # expect: clip-before-unscale step 0
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
