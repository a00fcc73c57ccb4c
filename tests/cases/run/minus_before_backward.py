"""The loss is differentiated with the wrong sign."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(60):
    x = torch.randn(32, 8)
    loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
    optimizer.zero_grad()
    (-loss).backward()  # expect: loss-diverged
    optimizer.step()
