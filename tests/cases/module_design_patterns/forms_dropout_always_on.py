"""Forms of dropout-always-on and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class GAT1(nn.Module):
    def __init__(self, a, b, p):
        super().__init__()
        self.lin = nn.Linear(a, b)
        self.p = p
    def forward(self, x, adj):
        h = F.dropout(x, self.p)  # expect: dropout-always-on
        return adj @ self.lin(h)


class GATRight1(nn.Module):
    def __init__(self, a, b, p):
        super().__init__()
        self.lin = nn.Linear(a, b)
        self.p = p
    def forward(self, x, adj):
        h = F.dropout(x, self.p, training=self.training)
        return adj @ self.lin(h)


from torch.nn.functional import dropout, relu
class Net2(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(10, 20), nn.Linear(20, 2)
    def forward(self, x):
        x = dropout(relu(self.fc1(x)), p=0.5)  # expect: dropout-always-on
        return self.fc2(x)


from torch.nn.functional import dropout, relu
class NetRight2(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(10, 20), nn.Linear(20, 2)
    def forward(self, x):
        x = dropout(relu(self.fc1(x)), p=0.5, training=self.training)
        return self.fc2(x)


class Attn3(nn.Module):
    def __init__(self, dim, heads, attn_dropout=0.1):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.attn_dropout = attn_dropout
    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.attn_dropout, is_causal=True)  # expect: dropout-always-on
        return y.transpose(1, 2).reshape(b, n, d)


class AttnRight3(nn.Module):
    def __init__(self, dim, heads, attn_dropout=0.1):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.attn_dropout = attn_dropout
    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.h, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.attn_dropout if self.training else 0.0, is_causal=True)
        return y.transpose(1, 2).reshape(b, n, d)


def ffn4(x, w1, w2, p):
    h = F.gelu(x @ w1)
    return F.dropout(h, p) @ w2  # expect: dropout-always-on
class Layer4(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(d, 4 * d) * 0.02)
        self.w2 = nn.Parameter(torch.randn(4 * d, d) * 0.02)
    def forward(self, x):
        return x + ffn4(x, self.w1, self.w2, 0.1)


def ffn_right4(x, w1, w2, p):
    h = F.gelu(x @ w1)
    return h @ w2
class LayerRight4(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(d, 4 * d) * 0.02)
        self.w2 = nn.Parameter(torch.randn(4 * d, d) * 0.02)
    def forward(self, x):
        return x + ffn_right4(x, self.w1, self.w2, 0.1)


class Tagger5(nn.Module):
    def __init__(self, vocab, dim, drop=0.3):
        super().__init__()
        self.drop = drop
        self.emb = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, 9)
    def encode(self, ids):
        return F.dropout(self.emb(ids), self.drop)  # expect: dropout-always-on
    def forward(self, ids):
        h, _ = self.lstm(self.encode(ids))
        return self.out(h)


class TaggerRight5(nn.Module):
    def __init__(self, vocab, dim, drop=0.3):
        super().__init__()
        self.drop = drop
        self.emb = nn.Embedding(vocab, dim)
        self.lstm = nn.LSTM(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, 9)
    def encode(self, ids):
        return F.dropout(self.emb(ids), self.drop, self.training)
    def forward(self, ids):
        h, _ = self.lstm(self.encode(ids))
        return self.out(h)


class Mlp6(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.l = nn.ModuleList(nn.Linear(d, d) for _ in range(3))
    def forward(self, x):
        for l in self.l:
            x = torch.dropout(torch.relu(l(x)), 0.1, True)  # expect: dropout-always-on
        return x


class MlpRight6(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.l = nn.ModuleList(nn.Linear(d, d) for _ in range(3))
    def forward(self, x):
        for l in self.l:
            x = torch.dropout(torch.relu(l(x)), 0.1, self.training)
        return x


class Unet8(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a = nn.Conv2d(c, c, 3, padding=1)
        self.drop = F.dropout2d
    def forward(self, x):
        return self.drop(self.a(x))  # expect: dropout-always-on


class UnetRight8(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a = nn.Conv2d(c, c, 3, padding=1)
        self.drop = nn.Dropout2d(0.5)
    def forward(self, x):
        return self.drop(self.a(x))


class Decoder9(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.cell = nn.GRUCell(h, h)
        self.rate = 0.3
    def forward(self, x, h):
        for t in range(x.size(1)):
            h = self.cell(F.dropout(x[:, t], p=self.rate), h)  # expect: dropout-always-on
        return h


class DecoderRight9(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.cell = nn.GRUCell(h, h)
        self.rate = 0.3
    def forward(self, x, h):
        for t in range(x.size(1)):
            h = self.cell(F.dropout(x[:, t], p=self.rate, training=self.training), h)
        return h


class Vit10(nn.Module):
    def __init__(self, d, cfg):
        super().__init__()
        self.cfg = cfg
        self.qkv = nn.Linear(d, 3 * d)
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return F.scaled_dot_product_attention(q, k, v, None, 0.1)  # expect: dropout-always-on


class VitRight10(nn.Module):
    def __init__(self, d, cfg):
        super().__init__()
        self.cfg = cfg
        self.qkv = nn.Linear(d, 3 * d)
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return F.scaled_dot_product_attention(q, k, v, None, 0.1 if self.training else 0.0)


class Resnetish11(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
    def forward(self, x):
        y = torch.nn.functional.dropout2d(F.relu(self.c1(x)), 0.2)  # expect: dropout-always-on
        return x + self.c2(y)


class ResnetishRight11(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)
    def forward(self, x):
        y = torch.nn.functional.dropout2d(F.relu(self.c1(x)), 0.2, self.training)
        return x + self.c2(y)


class Pooler12(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.lin = nn.Linear(d, d)
    def forward(self, x):
        drop = nn.Dropout(0.1)  # expect: dropout-always-on
        return drop(self.lin(x).tanh())


class PoolerRight12(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.lin = nn.Linear(d, d)
        self.drop = nn.Dropout(0.1)
    def forward(self, x):
        return self.drop(self.lin(x).tanh())


class Seq13(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Linear(d, d)
    def forward(self, x):
        steps = [self.f, torch.relu, lambda z: F.dropout(z, 0.5)]  # expect: dropout-always-on
        for s in steps:
            x = s(x)
        return x


class SeqRight13(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.f = nn.Linear(d, d)
    def forward(self, x):
        steps = [self.f, torch.relu, lambda z: F.dropout(z, 0.5, self.training)]
        for s in steps:
            x = s(x)
        return x


class Gcn14(nn.Module):
    def __init__(self, a, h, c, dropout):
        super().__init__()
        self.w1, self.w2 = nn.Linear(a, h), nn.Linear(h, c)
        self.dropout = dropout
    def forward(self, x, adj):
        x = F.relu(adj @ self.w1(x))
        if self.dropout > 0:
            x = F.dropout(x, self.dropout)  # expect: dropout-always-on
        return adj @ self.w2(x)


class GcnRight14(nn.Module):
    def __init__(self, a, h, c, dropout):
        super().__init__()
        self.w1, self.w2 = nn.Linear(a, h), nn.Linear(h, c)
        self.dropout = dropout
    def forward(self, x, adj):
        x = F.relu(adj @ self.w1(x))
        if self.dropout > 0:
            x = F.dropout(x, self.dropout, training=self.training)
        return adj @ self.w2(x)


class Base15(nn.Module):
    def regularise(self, h):
        return F.alpha_dropout(h, 0.1)  # expect: dropout-always-on
class Child15(Base15):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(2, 2)
    def forward(self, x):
        return self.regularise(self.f(x))


class BaseRight15(nn.Module):
    def regularise(self, h):
        return F.alpha_dropout(h, 0.1, self.training)
class ChildRight15(BaseRight15):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(2, 2)
    def forward(self, x):
        return self.regularise(self.f(x))
