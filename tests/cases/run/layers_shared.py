"""A stack from a multiplied list: six places, one layer."""

import torch
from torch import nn


def stack(width, depth):
    layer = nn.Sequential(nn.Linear(width, width), nn.Tanh())
    layers = [layer] * depth  # expect: layers-shared-by-repetition module layers
    return layers


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        blocks = [nn.Linear(16, 16), nn.ReLU()]
        self.stem = nn.Linear(8, 16)
        self.layers = nn.ModuleList(stack(16, 6))
        self.head = nn.Sequential(*blocks, nn.Linear(16, 1))

    def forward(self, x):
        x = self.stem(x)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


torch.manual_seed(0)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
for _ in range(20):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
