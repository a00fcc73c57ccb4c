"""A wide teacher and a narrow student of the same kind."""

import torch
from torch import nn


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Network(nn.Module):
    def __init__(self, width, depth, inputs=32, classes=10):
        super().__init__()
        self.inlet = nn.Linear(inputs, width)
        self.mixers = nn.Sequential(*[Mixer(width) for _ in range(depth)])
        self.head = nn.Linear(width, classes)

    def features(self, x):
        return self.mixers(self.inlet(x))

    def forward(self, x):
        return self.head(self.features(x))
