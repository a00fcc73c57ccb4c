"""Tensors that helpers make or use, and helpers that take care of the device."""

import torch
import torch.nn as nn


def rotations(dim, length):
    rates = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
    angles = torch.outer(torch.arange(length).float(), rates)
    return angles.cos(), angles.sin()


def causal(length):
    return torch.triu(torch.ones(length, length), diagonal=1).bool()


def turned(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def turned_anywhere(x, cos):
    return x * cos.to(x.device)


class Attention(nn.Module):
    def __init__(self, dim, length, heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.cos, self.sin = rotations(dim, length)  # expect: unregistered-tensor
        self.mask = causal(length)  # expect: unregistered-tensor
        self._tables(length)

    def _tables(self, length):
        self.steps = torch.arange(length)  # expect: unregistered-tensor
        self.decay = 0.9**self.steps.float()  # expect: unregistered-tensor

    def forward(self, x):
        n = x.size(1)
        mask = self.mask[:n, :n]
        x = turned(x, self.cos[:n], self.sin[:n])
        position = torch.sin(self.steps[:n])
        return self.attn(x, x, x, attn_mask=mask)[0] * self.decay[:n, None] + position[:, None]


class Cross(nn.Module):
    def __init__(self, fields, device):
        super().__init__()
        self.weight = torch.randn(fields, fields, requires_grad=True).to(device)  # expect: unregistered-tensor

    def forward(self, x):
        return x @ self.weight


class GivenToAnOptimizer(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.latent = torch.zeros(length, requires_grad=True)

    def forward(self, x):
        return x + self.latent


def fit(length):
    model = GivenToAnOptimizer(length)
    return torch.optim.Adam([model.latent])


class Careful(nn.Module):
    def __init__(self, dim, length, device):
        super().__init__()
        self.cos, self.sin = rotations(dim, length)
        self.table = self._make(length, device)
        self.kept = causal(length)

    def _make(self, length, device):
        return torch.ones(length, device=device)

    def set_length(self, length):
        self.kept = causal(length)

    def forward(self, x):
        keep = self.kept[: x.size(1)]
        return turned_anywhere(x, self.cos) + self.table + keep, self.sin.shape


class Blocks:
    """A chain that gives a name what it gave before."""

    def view(self, *sizes):
        return self

    def reshape(self, *sizes):
        return self.view(*sizes)


class Unpack(nn.Module):
    def forward(self, blocks):
        blocks = blocks.view(1)
        blocks = blocks.view(2).reshape(3)
        return blocks.view(4)
