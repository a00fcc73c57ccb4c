"""An image is optimised through a network that keeps its weights."""

import torch
from torch import nn

torch.manual_seed(0)
network = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 4))
wanted = torch.randn(1, 4)
image = torch.zeros(1, 64, requires_grad=True)
optimizer = torch.optim.Adam([image], 0.05)
for _ in range(60):
    optimizer.zero_grad()
    nn.functional.mse_loss(network(image), wanted).backward()
    optimizer.step()
