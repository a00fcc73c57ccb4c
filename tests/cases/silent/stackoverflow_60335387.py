"""Gradients are never set to zero: each step takes the sum of all before."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 10)
y = (x[:, :3].sum(1) > 0).long()
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(6):
    for first in range(0, 512, 32):
        loss = nn.functional.cross_entropy(net(x[first : first + 32]), y[first : first + 32])
        loss.backward()  # expect: gradients-not-zeroed
        optimizer.step()
