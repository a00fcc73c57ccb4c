"""Forms of uninitialised-parameter and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Bilinear1(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(a, b))
    def forward(self, x, y):
        return (x @ self.weight * y).sum(-1)


class BilinearRight1(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(a, b) / a ** 0.5)
    def forward(self, x, y):
        return (x @ self.weight * y).sum(-1)


class GraphConv2(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.w = nn.Parameter(torch.FloatTensor(i, o))  # expect: uninitialised-parameter
        self.b = nn.Parameter(torch.FloatTensor(o))
        nn.init.zeros_(self.b)
    def forward(self, x, adj):
        return adj @ (x @ self.w) + self.b


class GraphConvRight2(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.w = nn.Parameter(torch.FloatTensor(i, o).uniform_(-0.1, 0.1))
        self.b = nn.Parameter(torch.FloatTensor(o))
        nn.init.zeros_(self.b)
    def forward(self, x, adj):
        return adj @ (x @ self.w) + self.b


class Proto3(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.protos = nn.Parameter(torch.empty((n, d)))  # expect: uninitialised-parameter
    def forward(self, x):
        return -torch.cdist(x, self.protos)
def main3(loader):
    m = Proto3(10, 64)
    opt = torch.optim.Adam(m.parameters())
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(m(x), y).backward()
        opt.step()


class ProtoRight3(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        self.protos = nn.Parameter(torch.empty((n, d)).normal_())
    def forward(self, x):
        return -torch.cdist(x, self.protos)
def main_right3(loader):
    m = ProtoRight3(10, 64)
    opt = torch.optim.Adam(m.parameters())
    for x, y in loader:
        opt.zero_grad()
        F.cross_entropy(m(x), y).backward()
        opt.step()


class Attn4(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.q = nn.Linear(dim, dim)
        self.rel = nn.Parameter(torch.Tensor(heads, dim // heads))  # expect: uninitialised-parameter
        self._reset()
    def _reset(self):
        nn.init.xavier_uniform_(self.q.weight)
        nn.init.zeros_(self.q.bias)
    def forward(self, x):
        b, n, d = x.shape
        return self.q(x).view(b, n, *self.rel.shape) + self.rel


class AttnRight4(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.q = nn.Linear(dim, dim)
        self.rel = nn.Parameter(torch.zeros(heads, dim // heads))
        self._reset()
    def _reset(self):
        nn.init.xavier_uniform_(self.q.weight)
        nn.init.zeros_(self.q.bias)
    def forward(self, x):
        b, n, d = x.shape
        return self.q(x).view(b, n, *self.rel.shape) + self.rel


class Embed5(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        table = torch.empty(n, d)
        self.table = nn.Parameter(table)  # expect: uninitialised-parameter
    def forward(self, ids):
        return F.embedding(ids, self.table)


class EmbedRight5(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        table = torch.empty(n, d).normal_(std=0.02)
        self.table = nn.Parameter(table)
    def forward(self, ids):
        return F.embedding(ids, self.table)
