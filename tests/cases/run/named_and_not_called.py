"""A schedule of the loop's own is named where it is to be stepped, and stays where it is."""

import torch
from torch import nn


class Weight:
    """Of a penalty, which is to rise."""

    def __init__(self):
        self.value = 0.0

    def step(self):
        self.value = min(1.0, self.value + 0.02)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
weight, fast = Weight(), True
for _ in range(40):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    output = model(x)
    loss = nn.functional.cross_entropy(output, (x[:, 0] > 0).long()) + weight.value * output.square().mean()
    loss.backward()
    optimizer.step()
    if fast:
        weight.step  # expect: method-not-called
    else:
        weight.step()
