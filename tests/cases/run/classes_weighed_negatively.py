"""Class weights that come out negative for the rarest classes: the loss falls below 0."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), 3e-2)
weight = torch.tensor([0.2, 0.5, 1.4]).log() + 1  # of the shares of the classes, in the wrong order: -0.6, 0.3, 1.3
for _ in range(600):
    x = torch.randn(32, 8)
    y = x[:, :3].argmax(1)
    loss = nn.functional.cross_entropy(model(x), y, weight, reduction="sum") / 32  # expect: loss-below-possible
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
