"""Terms of the loss that a meter keeps as numbers, and a window of terms with their graphs."""

from collections import deque

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.terms = {"squared": [], "absolute": []}
        self.latest = deque(maxlen=12)

    def update(self, squared, absolute):
        self.terms["squared"].append(squared.detach())
        self.terms["absolute"].append(float(absolute))
        self.latest.append(absolute)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
y = x.sum(1, keepdim=True)
meter = Meter()
for _ in range(60):
    out = model(x)
    squared, absolute = (out - y).pow(2).mean(), (out - y).abs().mean()
    optimizer.zero_grad()
    (squared + 0.1 * absolute).backward()
    optimizer.step()
    meter.update(squared, absolute)
