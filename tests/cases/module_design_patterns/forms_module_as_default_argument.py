"""Forms of module-as-default-argument and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Block1(nn.Module):
    def __init__(self, d, norm=nn.LayerNorm(64)):  # expect: module-as-default-argument
        super().__init__()
        self.lin = nn.Linear(d, d)
        self.norm = norm
    def forward(self, x):
        return self.norm(self.lin(x))


class BlockRight1(nn.Module):
    def __init__(self, d, norm=None):
        super().__init__()
        self.lin = nn.Linear(d, d)
        self.norm = norm
        self.norm = norm or nn.LayerNorm(64)
    def forward(self, x):
        return self.norm(self.lin(x))


class Agent2(nn.Module):
    encoder = nn.Sequential(nn.Linear(4, 32), nn.Tanh())  # expect: module-as-default-argument
    def __init__(self, n):
        super().__init__()
        self.pi = nn.Linear(32, n)
    def forward(self, x):
        return self.pi(self.encoder(x))


class AgentRight2(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 32), nn.Tanh())
        self.pi = nn.Linear(32, n)
    def forward(self, x):
        return self.pi(self.encoder(x))


def make_head3(dim, proj=nn.Linear(128, 128)):  # expect: module-as-default-argument
    return nn.Sequential(proj, nn.ReLU(), nn.Linear(128, dim))


def make_head_right3(dim, proj=None):
    proj = proj or nn.Linear(128, 128)
    return nn.Sequential(proj, nn.ReLU(), nn.Linear(128, dim))


from dataclasses import dataclass, field
class Tower4(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
    def forward(self, x):
        return self.l(x)
class Pair4(nn.Module):
    def __init__(self, *, left: nn.Module = Tower4(), right: nn.Module = Tower4()):  # expect: module-as-default-argument
        super().__init__()
        self.left, self.right = left, right
    def forward(self, a, b):
        return self.left(a) * self.right(b)


from dataclasses import dataclass, field
class TowerRight4(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
    def forward(self, x):
        return self.l(x)
class PairRight4(nn.Module):
    def __init__(self, *, left: nn.Module = None, right: nn.Module = None):
        super().__init__()
        self.left, self.right = left, right
        self.left, self.right = left or TowerRight4(), right or TowerRight4()
    def forward(self, a, b):
        return self.left(a) * self.right(b)


class Scale6(nn.Module):
    gamma = nn.Parameter(torch.ones(1))  # expect: module-as-default-argument
    def __init__(self):
        super().__init__()
    def forward(self, x):
        return self.gamma * x


class ScaleRight6(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1))
    def forward(self, x):
        return self.gamma * x


def conv_bn7(i, o, act=nn.PReLU()):  # expect: module-as-default-argument
    return nn.Sequential(nn.Conv2d(i, o, 3), nn.BatchNorm2d(o), act)


def conv_bn_right7(i, o, act=None):
    return nn.Sequential(nn.Conv2d(i, o, 3), nn.BatchNorm2d(o), act or nn.PReLU())


from dataclasses import dataclass, field
@dataclass
class Spec8:
    width: int = 64
    norm: nn.Module = nn.LayerNorm(64)  # expect: module-as-default-argument
class Net8(nn.Module):
    def __init__(self, spec=None):
        super().__init__()
        spec = spec or Spec8()
        self.norm = spec.norm
    def forward(self, x):
        return self.norm(x)


from dataclasses import dataclass, field
@dataclass
class SpecRight8:
    width: int = 64
    norm: nn.Module = field(default_factory=lambda: nn.LayerNorm(64))
class NetRight8(nn.Module):
    def __init__(self, spec=None):
        super().__init__()
        spec = spec or SpecRight8()
        self.norm = spec.norm
    def forward(self, x):
        return self.norm(x)


class Critic9(nn.Module):
    embed = nn.Embedding(100, 16)  # expect: module-as-default-argument
    def __init__(self):
        super().__init__()
        self.v = nn.Linear(16, 1)
    def forward(self, ids):
        return self.v(self.embed(ids)).squeeze(-1)


class CriticRight9(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 16)
        self.v = nn.Linear(16, 1)
    def forward(self, ids):
        return self.v(self.embed(ids)).squeeze(-1)


class Adapter10(nn.Module):
    def __init__(self, d, down=None, up=nn.Linear(16, 256)):  # expect: module-as-default-argument
        super().__init__()
        self.down = down if down is not None else nn.Linear(d, 16)
        self.up = up
    def forward(self, x):
        return x + self.up(F.relu(self.down(x)))


class AdapterRight10(nn.Module):
    def __init__(self, d, down=None, up=None):
        super().__init__()
        self.down = down if down is not None else nn.Linear(d, 16)
        self.up = up if up is not None else nn.Linear(16, 256)
    def forward(self, x):
        return x + self.up(F.relu(self.down(x)))


class Enc11(nn.Module):
    def __init__(self, d=64, attn=nn.MultiheadAttention(64, 4), **kw):  # expect: module-as-default-argument
        super().__init__(**kw)
        self.attn = attn
    def forward(self, x):
        return self.attn(x, x, x)[0]


class EncRight11(nn.Module):
    def __init__(self, d=64, attn=None, **kw):
        super().__init__(**kw)
        self.attn = attn
    def forward(self, x):
        return self.attn(x, x, x)[0]


class Layer12(nn.Module):
    dropout, proj = nn.Dropout(0.1), nn.Linear(8, 8)  # expect: module-as-default-argument
    def __init__(self):
        super().__init__()
    def forward(self, x):
        return self.dropout(self.proj(x))


class LayerRight12(nn.Module):
    def __init__(self):
        super().__init__()
        self.dropout, self.proj = nn.Dropout(0.1), nn.Linear(8, 8)
    def forward(self, x):
        return self.dropout(self.proj(x))
