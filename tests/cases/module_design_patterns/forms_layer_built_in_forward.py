"""Forms of layer-built-in-forward and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Adapt1(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d
    def forward(self, x):
        proj = nn.Linear(x.shape[-1], self.d).to(x.device)  # expect: layer-built-in-forward
        return proj(x)


class AdaptRight1(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d
        self.proj = nn.LazyLinear(d)
    def forward(self, x):
        return self.proj(x)


class Block2(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.conv = nn.Conv2d(c, c, 3, padding=1)
    def forward(self, x):
        return F.relu(nn.BatchNorm2d(self.c)(self.conv(x)))  # expect: layer-built-in-forward


class BlockRight2(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.conv = nn.Conv2d(c, c, 3, padding=1)
        self.norm = nn.BatchNorm2d(c)
    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class Clf3(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3)
        self.n = n
    def forward(self, x):
        h = self.body(x).flatten(1)
        self.head = nn.Linear(h.size(1), self.n)  # expect: layer-built-in-forward
        return self.head(h)


class ClfRight3(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3)
        self.n = n
        self.head = nn.LazyLinear(n)
    def forward(self, x):
        h = self.body(x).flatten(1)
        return self.head(h)


class Res4(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.a, self.b = a, b
        self.conv = nn.Conv2d(a, b, 3, padding=1)
    def shortcut(self, x):
        if x.shape[1] != self.b:
            down = nn.Sequential(nn.Conv2d(x.shape[1], self.b, 1), nn.BatchNorm2d(self.b))  # expect: layer-built-in-forward
            return down(x)
        return x
    def forward(self, x):
        return self.conv(x) + self.shortcut(x)


class ResRight4(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.a, self.b = a, b
        self.conv = nn.Conv2d(a, b, 3, padding=1)
        self.skip = nn.Conv2d(a, b, 1)
    def shortcut(self, x):
        if x.shape[1] != self.b:
            return self.skip(x)
        return x
    def forward(self, x):
        return self.conv(x) + self.shortcut(x)


def conv_block5(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU())
class Up5(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
    def forward(self, x, skip):
        x = F.interpolate(x, scale_factor=2)
        return conv_block5(2 * self.c, self.c)(torch.cat([x, skip], 1))  # expect: layer-built-in-forward


def conv_block_right5(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU())
class UpRight5(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.merge = conv_block_right5(2 * c, c)
    def forward(self, x, skip):
        x = F.interpolate(x, scale_factor=2)
        return self.merge(torch.cat([x, skip], 1))


class Enc6(nn.Module):
    def __init__(self, d, depth):
        super().__init__()
        self.d, self.depth = d, depth
    def forward(self, x):
        layers = nn.ModuleList([nn.Linear(self.d, self.d) for _ in range(self.depth)]).to(x.device)  # expect: layer-built-in-forward
        for layer in layers:
            x = torch.tanh(layer(x))
        return x


class EncRight6(nn.Module):
    def __init__(self, d, depth):
        super().__init__()
        self.d, self.depth = d, depth
        self.layers = nn.ModuleList(nn.Linear(d, d) for _ in range(depth))
    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


class Attend7(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
    def forward(self, q, kv):
        attn = nn.MultiheadAttention(self.dim, 4, batch_first=True)  # expect: layer-built-in-forward
        out, w = attn(q, kv, kv)
        return out


class AttendRight7(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
    def forward(self, q, kv):
        out, w = self.attn(q, kv, kv)
        return out


class Emb8(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.n, self.d = n, d
    def forward(self, ids):
        table = nn.Embedding(self.n, self.d).cuda()  # expect: layer-built-in-forward
        return table(ids).sum(1)


class EmbRight8(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.n, self.d = n, d
        self.table = nn.Embedding(n, d)
    def forward(self, ids):
        return self.table(ids).sum(1)


class Lstm9(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d
    def forward(self, x):
        out, (h, c) = nn.LSTM(self.d, self.d, batch_first=True)(x)  # expect: layer-built-in-forward
        return h[-1]


class LstmRight9(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d
        self.rnn = nn.LSTM(d, d, batch_first=True)
    def forward(self, x):
        out, (h, c) = self.rnn(x)
        return h[-1]


class Lazy10(nn.Module):
    def __init__(self, out):
        super().__init__()
        self.out = out
        self.fc = None
    def forward(self, x):
        x = x.flatten(1)
        self.fc = nn.Linear(x.size(1), self.out).to(x.device)  # expect: layer-built-in-forward
        return self.fc(x)


class LazyRight10(nn.Module):
    def __init__(self, out):
        super().__init__()
        self.out = out
        self.fc = None
        self.fc = nn.LazyLinear(out)
    def forward(self, x):
        x = x.flatten(1)
        return self.fc(x)


class Fuse11(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
    def build(self):
        return nn.Sequential(nn.Conv2d(self.c, self.c, 1), nn.ReLU(), nn.Conv2d(self.c, self.c, 1))
    def forward(self, x):
        net = self.build().to(x.device)  # expect: layer-built-in-forward
        return net(x)


class FuseRight11(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.layers = nn.Sequential(nn.Conv2d(c, c, 1), nn.ReLU(), nn.Conv2d(c, c, 1))
    def build(self):
        return nn.Sequential(nn.Conv2d(self.c, self.c, 1), nn.ReLU(), nn.Conv2d(self.c, self.c, 1))
    def forward(self, x):
        return self.layers(x)


class Cls12(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.body = nn.Conv2d(3, 8, 3)
    def _head(self, h):
        fc = nn.Linear(h.shape[1], self.k, device=h.device)  # expect: layer-built-in-forward
        return fc(h)
    def forward(self, x):
        return self._head(self.body(x).flatten(1))


class ClsRight12(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.body = nn.Conv2d(3, 8, 3)
        self.head = nn.LazyLinear(k)
    def _head(self, h):
        return self.head(h)
    def forward(self, x):
        return self._head(self.body(x).flatten(1))


class Norm13(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Linear(d, d)
    def forward(self, x):
        h = self.f(x)
        norm = nn.LayerNorm(h.shape[1:])  # expect: layer-built-in-forward
        norm = norm.to(h.device)
        return norm(h)


class NormRight13(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Linear(d, d)
        self.n = nn.LayerNorm(d)
    def forward(self, x):
        h = self.f(x)
        return self.n(h)
