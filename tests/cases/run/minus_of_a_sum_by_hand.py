"""A regression whose squares are written out, and their negative is what falls."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(60):
    x = torch.randn(32, 8)
    errors = model(x).squeeze(1) - x.sum(1)
    loss = -(errors.square().mean() + errors.abs().mean())
    optimizer.zero_grad()
    loss.backward()  # expect: loss-diverged
    optimizer.step()
