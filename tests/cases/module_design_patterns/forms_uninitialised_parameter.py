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


class CapsLayer7(nn.Module):
    def __init__(self, n_in, n_out, d_in, d_out):
        super().__init__()
        self.W = nn.Parameter(torch.empty(1, n_in, n_out, d_out, d_in))  # expect: uninitialised-parameter
    def forward(self, x):
        return (self.W @ x[:, :, None, :, None]).squeeze(-1)
class Recon7(nn.Module):
    def __init__(self):
        super().__init__()
        self.W = nn.Parameter(torch.randn(3, 3))
        nn.init.orthogonal_(self.W)
    def forward(self, x):
        return x @ self.W


class CapsLayerRight7(nn.Module):
    def __init__(self, n_in, n_out, d_in, d_out):
        super().__init__()
        self.W = nn.Parameter(0.01 * torch.randn(1, n_in, n_out, d_out, d_in))
    def forward(self, x):
        return (self.W @ x[:, :, None, :, None]).squeeze(-1)
class ReconRight7(nn.Module):
    def __init__(self):
        super().__init__()
        self.W = nn.Parameter(torch.randn(3, 3))
        nn.init.orthogonal_(self.W)
    def forward(self, x):
        return x @ self.W


class Crf8(nn.Module):
    def __init__(self, num_tags):
        super().__init__()
        self.start = nn.Parameter(torch.empty(num_tags))
        self.trans = nn.Parameter(torch.empty(num_tags, num_tags))
        self.end = nn.Parameter(torch.empty(num_tags))  # expect: uninitialised-parameter
        nn.init.uniform_(self.start, -0.1, 0.1)
        nn.init.uniform_(self.trans, -0.1, 0.1)
    def forward(self, e):
        s = self.start + e[:, 0]
        for t in range(1, e.size(1)):
            s = torch.logsumexp(s.unsqueeze(2) + self.trans, 1) + e[:, t]
        return torch.logsumexp(s + self.end, 1)


class CrfRight8(nn.Module):
    def __init__(self, num_tags):
        super().__init__()
        self.start = nn.Parameter(torch.empty(num_tags))
        self.trans = nn.Parameter(torch.empty(num_tags, num_tags))
        self.end = nn.Parameter(torch.zeros(num_tags))
        nn.init.uniform_(self.start, -0.1, 0.1)
        nn.init.uniform_(self.trans, -0.1, 0.1)
    def forward(self, e):
        s = self.start + e[:, 0]
        for t in range(1, e.size(1)):
            s = torch.logsumexp(s.unsqueeze(2) + self.trans, 1) + e[:, t]
        return torch.logsumexp(s + self.end, 1)


class Lora9(nn.Module):
    def __init__(self, base: nn.Linear, r=8):
        super().__init__()
        self.base = base
        self.A = nn.Parameter(torch.empty(r, base.in_features, device=base.weight.device))
        self.B = nn.Parameter(torch.empty(base.out_features, r, device=base.weight.device))  # expect: uninitialised-parameter
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.A), self.B)


class LoraRight9(nn.Module):
    def __init__(self, base: nn.Linear, r=8):
        super().__init__()
        self.base = base
        self.A = nn.Parameter(torch.empty(r, base.in_features, device=base.weight.device))
        self.B = nn.Parameter(torch.zeros(base.out_features, r, device=base.weight.device))
        nn.init.kaiming_uniform_(self.A, a=math.sqrt(5))
    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.A), self.B)


class Temp10(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.lin = nn.Linear(d, d)
        self.memory = nn.Parameter(torch.FloatTensor(k, d))  # expect: uninitialised-parameter
        self.apply(self._init)
    def _init(self, m):
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=0.02)
    def forward(self, x):
        return (self.lin(x) @ self.memory.t()).softmax(-1) @ self.memory


class TempRight10(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.lin = nn.Linear(d, d)
        self.memory = nn.Parameter(torch.FloatTensor(k, d).normal_())
        self.apply(self._init)
    def _init(self, m):
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=0.02)
    def forward(self, x):
        return (self.lin(x) @ self.memory.t()).softmax(-1) @ self.memory


class Attn11(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        kw = {"device": None}
        self.u = nn.Parameter(torch.empty(h, d // h, **kw))  # expect: uninitialised-parameter
        self.v = nn.Parameter(torch.zeros(h, d // h))
    def forward(self, q, k):
        return (q + self.u) @ k.transpose(-1, -2) + (q + self.v) @ k.transpose(-1, -2)


class AttnRight11(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        kw = {"device": None}
        self.u = nn.Parameter(torch.zeros(h, d // h, **kw))
        self.v = nn.Parameter(torch.zeros(h, d // h))
    def forward(self, q, k):
        return (q + self.u) @ k.transpose(-1, -2) + (q + self.v) @ k.transpose(-1, -2)


class Kern12(nn.Module):
    def __init__(self, i, o, k):
        super().__init__()
        self.weight = nn.Parameter(torch.Tensor(o, i, k, k))
        self.bias = nn.Parameter(torch.Tensor(o))
    def forward(self, x):
        return F.conv2d(x, self.weight, self.bias)


class KernRight12(nn.Module):
    def __init__(self, i, o, k):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(o, i, k, k) * 0.01)
        self.bias = nn.Parameter(torch.zeros(o))
    def forward(self, x):
        return F.conv2d(x, self.weight, self.bias)
