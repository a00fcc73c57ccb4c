"""Blocks in a dictionary of lists: they run, get gradients, and no optimizer knows them."""

import torch
from torch import nn


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(8, 16)
        towers = {}
        for name in ("left", "right"):
            towers[name] = [nn.Linear(16, 16) for _ in range(2)]
        self.towers = towers  # expect: unregistered-modules module body.towers
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for layers in self.towers.values():
            for layer in layers:
                x = x + torch.tanh(layer(x))
        return self.head(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Towers()

    def forward(self, x):
        return self.body(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
y = x.sum(1, keepdim=True)
for _ in range(40):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
