"""Attention with a rate that is 0 by default."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, heads=8, attn_drop=0.0):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.attn_drop = nn.Dropout(attn_drop)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v, dropout_p=self.attn_drop.p)
        return x.transpose(1, 2).reshape(b, n, c)


class Encoder(nn.Module):
    def __init__(self, dim=64, depth=2, attn_drop_rate=0.0):
        super().__init__()
        self.blocks = nn.ModuleList([Attention(dim, attn_drop=attn_drop_rate) for _ in range(depth)])

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x


def build():
    config = dict(dim=64, depth=2, attn_drop_rate=0.0)
    return Encoder(**config)
