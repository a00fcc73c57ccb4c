"""The wrong sign stands in a factor."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
weight = -1.0
for _ in range(60):
    x = torch.randn(32, 8)
    loss = weight * nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
    optimizer.zero_grad()
    loss.backward()  # expect: loss-diverged
    optimizer.step()
