"""Forms of layers-shared-by-repetition and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Enc1(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(d, 4)] * n)  # expect: layers-shared-by-repetition
    def forward(self, x):
        for l in self.layers:
            x = l(x)
        return x


class EncRight1(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(d, 4) for _ in range(n)])
    def forward(self, x):
        for l in self.layers:
            x = l(x)
        return x


class Deep2(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        layer = nn.Linear(d, d)
        self.net = nn.Sequential(*[layer for _ in range(n)])  # expect: layers-shared-by-repetition
    def forward(self, x):
        return self.net(x)


class DeepRight2(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.net = nn.Sequential(*[nn.Linear(d, d) for _ in range(n)])
    def forward(self, x):
        return self.net(x)


def stack3(block, n):
    return nn.Sequential(*([block] * n))  # expect: layers-shared-by-repetition
class Gen3(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.res = stack3(nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.ReLU()), 9)
    def forward(self, x):
        return self.res(x)


def stack_right3(block, n):
    return nn.Sequential(*[copy.deepcopy(block) for _ in range(n)])
class GenRight3(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.res = stack_right3(nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.ReLU()), 9)
    def forward(self, x):
        return self.res(x)


class Tasks4(nn.Module):
    def __init__(self, d, tasks):
        super().__init__()
        head = nn.Linear(d, 2)
        self.heads = nn.ModuleDict({t: head for t in tasks})  # expect: layers-shared-by-repetition
    def forward(self, x):
        return {t: h(x) for t, h in self.heads.items()}


class TasksRight4(nn.Module):
    def __init__(self, d, tasks):
        super().__init__()
        self.heads = nn.ModuleDict({t: nn.Linear(d, 2) for t in tasks})
    def forward(self, x):
        return {t: h(x) for t, h in self.heads.items()}


class Stack5(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.blocks = nn.ModuleList()
        block = nn.GRU(cfg.d, cfg.d)
        for i in range(cfg.depth):
            self.blocks.append(block)  # expect: layers-shared-by-repetition
    def forward(self, x):
        for b in self.blocks:
            x, _ = b(x)
        return x


class StackRight5(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.blocks = nn.ModuleList()
        for i in range(cfg.depth):
            self.blocks.append(nn.GRU(cfg.d, cfg.d))
    def forward(self, x):
        for b in self.blocks:
            x, _ = b(x)
        return x


class Stack6(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        blocks = n * [nn.Linear(d, d), nn.ReLU()]  # expect: layers-shared-by-repetition
        self.net = nn.Sequential(*blocks)
    def forward(self, x):
        return self.net(x)


class StackRight6(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        blocks = [m for _ in range(n) for m in (nn.Linear(d, d), nn.ReLU())]
        self.net = nn.Sequential(*blocks)
    def forward(self, x):
        return self.net(x)


class Stack7(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.norms = nn.ModuleList(itertools.repeat(nn.LayerNorm(d), n))  # expect: layers-shared-by-repetition
        self.ffs = nn.ModuleList(nn.Linear(d, d) for _ in range(n))
    def forward(self, x):
        for n, f in zip(self.norms, self.ffs):
            x = x + f(n(x))
        return x


class StackRight7(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(n))
        self.ffs = nn.ModuleList(nn.Linear(d, d) for _ in range(n))
    def forward(self, x):
        for n, f in zip(self.norms, self.ffs):
            x = x + f(n(x))
        return x


class Decoder8(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        layer = nn.TransformerDecoderLayer(d, 8)
        self.layers = nn.ModuleList()
        self.layers.extend([layer] * n)  # expect: layers-shared-by-repetition
    def forward(self, x, m):
        for l in self.layers:
            x = l(x, m)
        return x


class DecoderRight8(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        layer = nn.TransformerDecoderLayer(d, 8)
        self.layers = nn.ModuleList()
        self.layers.extend([copy.deepcopy(layer) for _ in range(n)])
    def forward(self, x, m):
        for l in self.layers:
            x = l(x, m)
        return x


def make_layers9(cfg):
    layer = nn.TransformerEncoderLayer(cfg.d, cfg.h, batch_first=True)
    return nn.ModuleList(layer for _ in range(cfg.n))  # expect: layers-shared-by-repetition
class Enc9(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.layers = make_layers9(cfg)
    def forward(self, x):
        for l in self.layers:
            x = l(x)
        return x


def make_layers_right9(cfg):
    return nn.ModuleList(nn.TransformerEncoderLayer(cfg.d, cfg.h, batch_first=True) for _ in range(cfg.n))
class EncRight9(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.layers = make_layers_right9(cfg)
    def forward(self, x):
        for l in self.layers:
            x = l(x)
        return x


class Tcn10(nn.Module):
    def __init__(self, c, n):
        super().__init__()
        conv, act = nn.Conv1d(c, c, 3, padding=1), nn.ReLU()
        seq = []
        for _ in range(n):
            seq.append(conv)  # expect: layers-shared-by-repetition
            seq.append(act)
        self.body = nn.Sequential(*seq)
    def forward(self, x):
        return self.body(x)


class TcnRight10(nn.Module):
    def __init__(self, c, n):
        super().__init__()
        conv, act = nn.Conv1d(c, c, 3, padding=1), nn.ReLU()
        seq = []
        for _ in range(n):
            seq.append(nn.Conv1d(c, c, 3, padding=1))
            seq.append(act)
        self.body = nn.Sequential(*seq)
    def forward(self, x):
        return self.body(x)


class Heads11(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.Linear(d, d))] * k)  # expect: layers-shared-by-repetition
    def forward(self, x, w):
        return sum(w[:, i:i + 1] * e(x) for i, e in enumerate(self.experts))


class HeadsRight11(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.Linear(d, d)) for _ in range(k)])
    def forward(self, x, w):
        return sum(w[:, i:i + 1] * e(x) for i, e in enumerate(self.experts))


class Deep12(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        block = nn.Sequential(nn.Linear(d, d), nn.LayerNorm(d), nn.ReLU())
        for i in range(n):
            self.add_module(f"block{i}", block)  # expect: layers-shared-by-repetition
    def forward(self, x):
        for m in self.children():
            x = m(x)
        return x


class DeepRight12(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        block = nn.Sequential(nn.Linear(d, d), nn.LayerNorm(d), nn.ReLU())
        for i in range(n):
            self.add_module(f"block{i}", copy.deepcopy(block))
    def forward(self, x):
        for m in self.children():
            x = m(x)
        return x


class Net13(nn.Module):
    def __init__(self, d, n, layer=None):
        super().__init__()
        layer = layer or nn.Linear(d, d)
        self.layers = nn.ModuleList([layer for _ in range(n)])  # expect: layers-shared-by-repetition
    def forward(self, x):
        for l in self.layers:
            x = l(x)
        return x


class NetRight13(nn.Module):
    def __init__(self, d, n, layer=None):
        super().__init__()
        layer = layer or nn.Linear(d, d)
        self.layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])
    def forward(self, x):
        for l in self.layers:
            x = l(x)
        return x


class Net14(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        proto = nn.LSTMCell(d, d)
        cells = [proto] * n  # expect: layers-shared-by-repetition
        self.cells = nn.ModuleList(cells)
    def forward(self, x, s):
        for c in self.cells:
            s = c(x, s)
            x = s[0]
        return x


class NetRight14(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        proto = nn.LSTMCell(d, d)
        cells = [copy.deepcopy(proto) for _ in range(n)]
        self.cells = nn.ModuleList(cells)
    def forward(self, x, s):
        for c in self.cells:
            s = c(x, s)
            x = s[0]
        return x
