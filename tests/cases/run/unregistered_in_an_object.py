"""Projections in a tuple of an object that is no module: they get gradients, and no optimizer knows them."""

import torch
from torch import nn


class Skips:
    def __init__(self, widths):
        self.projections = tuple(nn.Linear(width, width) for width in widths)

    def __getitem__(self, level):
        return self.projections[level]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)])
        self.skips = Skips([8, 8])  # expect: unregistered-modules module skips.projections
        self.gate = nn.Sequential(nn.Linear(8, 8), nn.Sigmoid())  # expect: parameter-never-used module gate.0
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        for level, layer in enumerate(self.down):
            x = torch.relu(layer(x)) + self.skips[level](x)
        return self.head(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
y = x[:, :3].argmax(1)
for _ in range(40):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y, label_smoothing=0.1).backward()
    optimizer.step()
