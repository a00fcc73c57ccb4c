"""Forms of unregistered-modules and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class FPN1(nn.Module):
    def __init__(self, chans, out=256):
        super().__init__()
        lateral = []
        for c in chans:
            lateral.append(nn.Conv2d(c, out, 1))
        self.lateral = lateral  # expect: unregistered-modules
        self.final = nn.Conv2d(out, out, 3)
    def forward(self, feats):
        return [self.final(l(f)) for l, f in zip(self.lateral, feats)]


class FPNRight1(nn.Module):
    def __init__(self, chans, out=256):
        super().__init__()
        lateral = nn.ModuleList()
        for c in chans:
            lateral.append(nn.Conv2d(c, out, 1))
        self.lateral = lateral
        self.final = nn.Conv2d(out, out, 3)
    def forward(self, feats):
        return [self.final(l(f)) for l, f in zip(self.lateral, feats)]


class Experts2(nn.Module):
    def __init__(self, n, dim):
        super().__init__()
        self.gate = nn.Linear(dim, n)
        self.experts = tuple(Expert2(dim) for _ in range(n))  # expect: unregistered-modules
    def forward(self, x):
        w = self.gate(x).softmax(-1)
        return sum(w[..., i:i + 1] * e(x) for i, e in enumerate(self.experts))
class Expert2(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.a = nn.Linear(dim, 4 * dim)
        self.b = nn.Linear(4 * dim, dim)
    def forward(self, x):
        return self.b(F.gelu(self.a(x)))


class ExpertsRight2(nn.Module):
    def __init__(self, n, dim):
        super().__init__()
        self.gate = nn.Linear(dim, n)
        self.experts = nn.ModuleList(ExpertRight2(dim) for _ in range(n))
    def forward(self, x):
        w = self.gate(x).softmax(-1)
        return sum(w[..., i:i + 1] * e(x) for i, e in enumerate(self.experts))
class ExpertRight2(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.a = nn.Linear(dim, 4 * dim)
        self.b = nn.Linear(4 * dim, dim)
    def forward(self, x):
        return self.b(F.gelu(self.a(x)))


def make_blocks3(depth, dim):
    return [nn.TransformerEncoderLayer(dim, 4, batch_first=True) for _ in range(depth)]
class Enc3(nn.Module):
    def __init__(self, depth, dim):
        super().__init__()
        self.blocks = make_blocks3(depth, dim)  # expect: unregistered-modules
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def make_blocks_right3(depth, dim):
    return [nn.TransformerEncoderLayer(dim, 4, batch_first=True) for _ in range(depth)]
class EncRight3(nn.Module):
    def __init__(self, depth, dim):
        super().__init__()
        self.blocks = nn.ModuleList(make_blocks_right3(depth, dim))
    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


class Codebook5(nn.Module):
    def __init__(self, levels, size, dim):
        super().__init__()
        self.books = {}  # expect: unregistered-modules
        for level in range(levels):
            self.books[f"l{level}"] = nn.Parameter(torch.randn(size, dim))
    def forward(self, level, ids):
        return self.books[f"l{level}"][ids]


class CodebookRight5(nn.Module):
    def __init__(self, levels, size, dim):
        super().__init__()
        self.books = {}
        for level in range(levels):
            self.register_parameter(f"l{level}", nn.Parameter(torch.randn(size, dim)))
            self.books[f"l{level}"] = getattr(self, f"l{level}")
    def forward(self, level, ids):
        return self.books[f"l{level}"][ids]


class RNNStack6(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.cells = []  # expect: unregistered-modules
        self.build(sizes)
    def build(self, sizes):
        for i, o in zip(sizes[:-1], sizes[1:]):
            self.cells.append(nn.GRUCell(i, o))
    def forward(self, x, hs):
        out = []
        for cell, h in zip(self.cells, hs):
            x = cell(x, h)
            out.append(x)
        return x, out


class RNNStackRight6(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.cells = nn.ModuleList()
        self.build(sizes)
    def build(self, sizes):
        for i, o in zip(sizes[:-1], sizes[1:]):
            self.cells.append(nn.GRUCell(i, o))
    def forward(self, x, hs):
        out = []
        for cell, h in zip(self.cells, hs):
            x = cell(x, h)
            out.append(x)
        return x, out


class Multi7(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.towers = dict(user=Tower7(cfg.u), item=Tower7(cfg.i))  # expect: unregistered-modules
    def forward(self, batch):
        u = self.towers["user"](batch["user"])
        return (u * self.towers["item"](batch["item"])).sum(-1)
class Tower7(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n, 32), nn.ReLU(), nn.Linear(32, 16))
    def forward(self, x):
        return self.net(x)


class MultiRight7(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.towers = nn.ModuleDict(dict(user=TowerRight7(cfg.u), item=TowerRight7(cfg.i)))
    def forward(self, batch):
        u = self.towers["user"](batch["user"])
        return (u * self.towers["item"](batch["item"])).sum(-1)
class TowerRight7(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(n, 32), nn.ReLU(), nn.Linear(32, 16))
    def forward(self, x):
        return self.net(x)


class Hydra8(nn.Module):
    def __init__(self, trunk, classes):
        super().__init__()
        self.trunk = trunk
        self.heads = {name: self._head(n) for name, n in classes.items()}  # expect: unregistered-modules
    def _head(self, n):
        return nn.Sequential(nn.Dropout(0.1), nn.Linear(256, n))
    def forward(self, x):
        h = self.trunk(x)
        return {k: f(h) for k, f in self.heads.items()}


class HydraRight8(nn.Module):
    def __init__(self, trunk, classes):
        super().__init__()
        self.trunk = trunk
        self.heads = nn.ModuleDict({name: self._head(n) for name, n in classes.items()})
    def _head(self, n):
        return nn.Sequential(nn.Dropout(0.1), nn.Linear(256, n))
    def forward(self, x):
        h = self.trunk(x)
        return {k: f(h) for k, f in self.heads.items()}


class WaveNet9(nn.Module):
    def __init__(self, ch, n):
        super().__init__()
        self.filters, self.gates = [], []  # expect: unregistered-modules
        for i in range(n):
            self.filters.append(nn.Conv1d(ch, ch, 2, dilation=2 ** i))
            self.gates.append(nn.Conv1d(ch, ch, 2, dilation=2 ** i))
    def forward(self, x):
        for f, g in zip(self.filters, self.gates):
            x = torch.tanh(f(x)) * torch.sigmoid(g(x))
        return x


class WaveNetRight9(nn.Module):
    def __init__(self, ch, n):
        super().__init__()
        self.filters, self.gates = nn.ModuleList(), nn.ModuleList()
        for i in range(n):
            self.filters.append(nn.Conv1d(ch, ch, 2, dilation=2 ** i))
            self.gates.append(nn.Conv1d(ch, ch, 2, dilation=2 ** i))
    def forward(self, x):
        for f, g in zip(self.filters, self.gates):
            x = torch.tanh(f(x)) * torch.sigmoid(g(x))
        return x


class MoE10(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.router = nn.Linear(d, n)
        self.experts = [copy.deepcopy(nn.Sequential(nn.Linear(d, d), nn.ReLU())) for _ in range(n)]  # expect: unregistered-modules
    def forward(self, x):
        p = self.router(x).softmax(-1)
        return sum(p[:, i:i + 1] * e(x) for i, e in enumerate(self.experts))


class MoERight10(nn.Module):
    def __init__(self, d, n):
        super().__init__()
        self.router = nn.Linear(d, n)
        self.experts = nn.ModuleList([copy.deepcopy(nn.Sequential(nn.Linear(d, d), nn.ReLU())) for _ in range(n)])
    def forward(self, x):
        p = self.router(x).softmax(-1)
        return sum(p[:, i:i + 1] * e(x) for i, e in enumerate(self.experts))


class PolyNet11(nn.Module):
    def __init__(self, widths):
        super().__init__()
        layers = []
        for a, b in zip(widths, widths[1:]):
            layers += [nn.Linear(a, b), nn.ReLU()]
        self.layers = layers  # expect: unregistered-modules
    def forward(self, x):
        for l in self.layers:
            x = l(x)
        return x


class PolyNetRight11(nn.Module):
    def __init__(self, widths):
        super().__init__()
        layers = []
        for a, b in zip(widths, widths[1:]):
            layers += [nn.Linear(a, b), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
    def forward(self, x):
        x = self.layers(x)
        return x


from transformers import AutoModel
class TwoTower12(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.encoders = [AutoModel.from_pretrained(n) for n in names]  # expect: unregistered-modules
        self.mix = nn.Linear(768 * len(names), 2)
    def forward(self, batches):
        return self.mix(torch.cat([e(**b).pooler_output for e, b in zip(self.encoders, batches)], -1))


from transformers import AutoModel
class TwoTowerRight12(nn.Module):
    def __init__(self, names):
        super().__init__()
        self.encoders = nn.ModuleList([AutoModel.from_pretrained(n) for n in names])
        self.mix = nn.Linear(768 * len(names), 2)
    def forward(self, batches):
        return self.mix(torch.cat([e(**b).pooler_output for e, b in zip(self.encoders, batches)], -1))


class Net13(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self._setup(cfg)
    def _setup(self, cfg):
        blocks = []
        for i in range(cfg.n):
            block = nn.Sequential(nn.Conv2d(cfg.c, cfg.c, 3), nn.ReLU())
            blocks.append(block)
        self.blocks = blocks  # expect: unregistered-modules
    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x


class NetRight13(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self._setup(cfg)
    def _setup(self, cfg):
        blocks = []
        for i in range(cfg.n):
            block = nn.Sequential(nn.Conv2d(cfg.c, cfg.c, 3), nn.ReLU())
            blocks.append(block)
        self.blocks = nn.ModuleList(blocks)
    def forward(self, x):
        for b in self.blocks:
            x = b(x)
        return x


from collections import defaultdict
class Router14(nn.Module):
    def __init__(self, d, langs):
        super().__init__()
        self.adapters = defaultdict(dict)  # expect: unregistered-modules
        for l in langs:
            self.adapters[l] = nn.ModuleDict({"down": nn.Linear(d, 8), "up": nn.Linear(8, d)})
    def forward(self, x, l):
        a = self.adapters[l]
        return x + a["up"](F.relu(a["down"](x)))


from collections import defaultdict
class RouterRight14(nn.Module):
    def __init__(self, d, langs):
        super().__init__()
        self.adapters = nn.ModuleDict()
        for l in langs:
            self.adapters[l] = nn.ModuleDict({"down": nn.Linear(d, 8), "up": nn.Linear(8, d)})
    def forward(self, x, l):
        a = self.adapters[l]
        return x + a["up"](F.relu(a["down"](x)))
