"""Plain values, and layers, that are assigned before nn.Module.__init__: a switch may be called like a layer."""

import torch
from torch import nn


class Noise(nn.Module):
    def __init__(self, width, noise=True, **kwargs):
        self.width = width
        self.is_active = noise
        super().__init__(**kwargs)

    def forward(self, mean, spread):
        return mean + torch.randn_like(mean) * spread * self.is_active


class Net(nn.Module):
    def __init__(self, inputs, width=8, noise=True, **kwargs):
        super().__init__(**kwargs)
        self.mean = nn.Linear(inputs, width)
        self.noise = Noise(width, noise)

    def forward(self, x):
        m = self.mean(x)
        return self.noise(m, m.exp())


class Early(nn.Module):
    def __init__(self, width):
        self.layer = nn.Linear(width, width)  # expect: super-init-missing
        super().__init__()

    def forward(self, x):
        return self.layer(x)
