"""One term of the loss goes into a meter with its graph; the other, and a window of outputs, may stay."""

from collections import deque

import torch
from torch import nn


class Meter:
    def __init__(self):
        self.terms = {"squared": [], "absolute": []}

    def update(self, **terms):
        for name, value in terms.items():
            self.terms[name].append(value)  # expect: graph-retained


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
y = x.sum(1, keepdim=True)
meter, latest = Meter(), deque(maxlen=4)
for _ in range(60):
    out = model(x)
    latest.append(out)
    squared, absolute = (out - y).pow(2).mean(), (out - y).abs().mean()
    optimizer.zero_grad()
    (squared + 0.1 * absolute).backward()
    optimizer.step()
    meter.update(squared=squared.detach(), absolute=absolute)
