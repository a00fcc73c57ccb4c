"""A block that projects its skip connection with a new layer at every call, made by a helper."""

import torch
from torch import nn


class Projection(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(wide, narrow, bias=False), nn.LayerNorm(narrow))

    def forward(self, x):
        return self.inner(x)


def shortcut(x, width):
    if x.size(-1) == width:
        return x
    return Projection(x.size(-1), width)(x)  # expect: layer-built-in-forward


class Block(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.layer, self.narrow = nn.Linear(wide, narrow), narrow

    def forward(self, x):
        return torch.relu(self.layer(x)) + shortcut(x, self.narrow)


torch.manual_seed(0)
model = nn.Sequential(Block(8, 16), Block(16, 16), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
for _ in range(30):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
