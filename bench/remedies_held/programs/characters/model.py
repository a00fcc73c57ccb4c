"""A character transformer of two blocks."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def sinusoids(length, width):
    position = torch.arange(length).unsqueeze(1)
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.project(self.before(x)).view(batch, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        rate = self.dropout if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=rate, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.between(x))


class CharacterModel(nn.Module):
    def __init__(self, characters, width=64, heads=4, depth=2, length=48, dropout=0.05):
        super().__init__()
        self.embed = nn.Embedding(characters, width)
        self.register_buffer("positions", sinusoids(length, width))
        self.blocks = nn.ModuleList([Block(width, heads, dropout) for _ in range(depth)])
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, characters)

    def forward(self, tokens):
        x = self.embed(tokens) + self.positions[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))
