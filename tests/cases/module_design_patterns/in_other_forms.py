"""The faults of modules in the forms that models are written in."""

import math
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn


class Rotary(nn.Module):
    def __init__(self, width, length=512):
        super().__init__()
        self.proj = nn.Linear(width, width)
        self._tables(width, length)

    def _tables(self, width, length):
        half = width // 2
        freq = torch.exp(-math.log(10000.0) * torch.arange(half) / half)
        angle = torch.outer(torch.arange(length).float(), freq)
        self.cos = angle.cos()  # expect: unregistered-tensor
        self.sin = angle.sin()  # expect: unregistered-tensor

    def forward(self, x):
        a, b = self.proj(x).chunk(2, dim=-1)
        cos, sin = self.cos[: x.shape[-2]], self.sin[: x.shape[-2]]
        return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


class Heads(nn.Module):
    def __init__(self, width, channels, tasks=("click", "dwell")):
        super().__init__()
        self.heads = OrderedDict()  # expect: unregistered-modules
        for task in tasks:
            self.heads[task] = nn.Linear(width, 1)
        self.lateral = list(map(lambda c: nn.Conv2d(c, width, 1), channels))  # expect: unregistered-modules
        self.sizes = OrderedDict((task, 1) for task in tasks)
        self.kernels = list(map(lambda c: c + 1, channels))

    def forward(self, x):
        return {task: head(x) for task, head in self.heads.items()}


class Pairs(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        n = depth
        self.blocks = [(nn.Linear(width, width), nn.LayerNorm(width)) for _ in range(n)]  # expect: unregistered-modules
        self.acts = [(nn.ReLU(), nn.Tanh()) for _ in range(depth)]

    def forward(self, x):
        for linear, norm in self.blocks:
            x = norm(x + linear(x))
        return x


class Weighted(nn.Module):
    def __init__(self, weights=(1.0, 2.0, 3.0), scale=2.0):
        super().__init__()
        self.weights = torch.tensor(weights)  # expect: unregistered-tensor
        self.scale = torch.tensor(scale)  # of no dimension: it may stay on the CPU

    def forward(self, logits, target):
        return F.cross_entropy(logits, target, weight=self.weights) * self.scale


class Attention(nn.Module):
    def __init__(self, width, rate=0.1):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.rate = rate

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        return F.scaled_dot_product_attention(q, k, v, dropout_p=self.rate)  # expect: dropout-always-on


class AttentionInTraining(Attention):
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        rate = self.rate if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, dropout_p=rate)


class Kept(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3)
        self.late = None

    def forward(self, x):
        h = self.conv(x).flatten(1)
        if self.late is None:
            self.late = nn.Linear(h.shape[1], 10)
        self.fc = nn.Linear(h.shape[1], 10)  # expect: layer-built-in-forward
        return self.fc(h) + self.late(h)


def stack(width, depth):
    block = nn.Sequential(nn.Linear(width, width), nn.ReLU())
    layers, own = [], []
    for _ in range(depth):
        layers.append(block)  # expect: layers-shared-by-repetition
        own.append(nn.Linear(width, width))
    return nn.Sequential(*layers), nn.Sequential(*own)
