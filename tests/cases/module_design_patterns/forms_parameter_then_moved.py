"""Forms of parameter-then-moved and, beside each, the same code made right."""

import copy
import itertools
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Prompt1(nn.Module):
    def __init__(self, n, d, device):
        super().__init__()
        self.tokens = nn.Parameter(torch.randn(n, d)).to(device)  # expect: parameter-then-moved
    def forward(self, x):
        return torch.cat([self.tokens.expand(len(x), -1, -1), x], 1)


class PromptRight1(nn.Module):
    def __init__(self, n, d, device):
        super().__init__()
        self.tokens = nn.Parameter(torch.randn(n, d, device=device))
    def forward(self, x):
        return torch.cat([self.tokens.expand(len(x), -1, -1), x], 1)


class Temp2(nn.Module):
    def __init__(self):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.ones([])) * math.log(1 / 0.07)  # expect: parameter-then-moved
    def forward(self, a, b):
        return self.logit_scale.exp() * a @ b.T


class TempRight2(nn.Module):
    def __init__(self):
        super().__init__()
        self.logit_scale = nn.Parameter(torch.ones([]) * math.log(1 / 0.07))
    def forward(self, a, b):
        return self.logit_scale.exp() * a @ b.T


class LoRA3(nn.Module):
    def __init__(self, base, r):
        super().__init__()
        self.base = base
        a = torch.empty(base.in_features, r)
        nn.init.kaiming_uniform_(a)
        self.a = nn.Parameter(a).to(base.weight.device)  # expect: parameter-then-moved
        self.b = nn.Parameter(torch.zeros(r, base.out_features))
    def forward(self, x):
        return self.base(x) + x @ self.a @ self.b


class LoRARight3(nn.Module):
    def __init__(self, base, r):
        super().__init__()
        self.base = base
        a = torch.empty(base.in_features, r)
        nn.init.kaiming_uniform_(a)
        self.a = nn.Parameter(a.to(base.weight.device))
        self.b = nn.Parameter(torch.zeros(r, base.out_features))
    def forward(self, x):
        return self.base(x) + x @ self.a @ self.b


class Gate4(nn.Module):
    def __init__(self, d, dtype=torch.bfloat16):
        super().__init__()
        self.w = self._init_weight((d, d), dtype)  # expect: parameter-then-moved
    def _init_weight(self, shape, dtype):
        return nn.Parameter(torch.randn(*shape)).to(dtype)
    def forward(self, x):
        return x @ self.w


class GateRight4(nn.Module):
    def __init__(self, d, dtype=torch.bfloat16):
        super().__init__()
        self.w = nn.Parameter(torch.randn(d, d).to(dtype))
    def _init_weight(self, shape, dtype):
        return nn.Parameter(torch.randn(*shape)).to(dtype)
    def forward(self, x):
        return x @ self.w


class Gcn5(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        weight = nn.Parameter(torch.FloatTensor(n, d).normal_())
        if torch.cuda.is_available():
            weight = weight.cuda()
        self.weight = weight  # expect: parameter-then-moved
    def forward(self, adj, x):
        return adj @ x @ self.weight


class GcnRight5(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        weight = nn.Parameter(torch.FloatTensor(n, d).normal_())
        if torch.cuda.is_available():
            weight = nn.Parameter(weight.data.cuda())
        self.weight = weight
    def forward(self, adj, x):
        return adj @ x @ self.weight


class Crf6(nn.Module):
    def __init__(self, tags, device):
        super().__init__()
        self.trans = nn.Parameter(torch.randn(tags, tags))
        self.trans = self.trans.to(device)  # expect: parameter-then-moved
    def forward(self, e):
        return e + self.trans


class CrfRight6(nn.Module):
    def __init__(self, tags, device):
        super().__init__()
        self.trans = nn.Parameter(torch.randn(tags, tags))
        self.to(device)
    def forward(self, e):
        return e + self.trans


class Rbf7(nn.Module):
    def __init__(self, k, d):
        super().__init__()
        self.centers = torch.nn.Parameter(torch.rand(k, d), requires_grad=True).cuda()  # expect: parameter-then-moved
    def forward(self, x):
        return torch.exp(-torch.cdist(x, self.centers) ** 2)


class RbfRight7(nn.Module):
    def __init__(self, k, d):
        super().__init__()
        self.centers = torch.nn.Parameter(torch.rand(k, d).cuda(), requires_grad=True)
    def forward(self, x):
        return torch.exp(-torch.cdist(x, self.centers) ** 2)


class Soft8(nn.Module):
    def __init__(self, k, d):
        super().__init__()
        self.slots = 0.02 * nn.Parameter(torch.randn(1, k, d))  # expect: parameter-then-moved
    def forward(self, x):
        return x @ self.slots.transpose(1, 2)


class SoftRight8(nn.Module):
    def __init__(self, k, d):
        super().__init__()
        self.slots = nn.Parameter(0.02 * torch.randn(1, k, d))
    def forward(self, x):
        return x @ self.slots.transpose(1, 2)


class Arc9(nn.Module):
    def __init__(self, d, n, device="cuda"):
        super().__init__()
        w = nn.Parameter(torch.Tensor(n, d))
        nn.init.xavier_uniform_(w)
        self.w = w.to(device)  # expect: parameter-then-moved
    def forward(self, x):
        return F.linear(F.normalize(x), F.normalize(self.w))


class ArcRight9(nn.Module):
    def __init__(self, d, n, device="cuda"):
        super().__init__()
        w = nn.Parameter(torch.Tensor(n, d))
        nn.init.xavier_uniform_(w)
        self.w = w
    def forward(self, x):
        return F.linear(F.normalize(x), F.normalize(self.w))


class Gates10(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.zeros(n)).half(), nn.Parameter(torch.ones(n)).half()  # expect: parameter-then-moved
    def forward(self, x):
        return x * self.b + self.a


class GatesRight10(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.zeros(n).half()), nn.Parameter(torch.ones(n).half())
    def forward(self, x):
        return x * self.b + self.a


class P12(nn.Module):
    def __init__(self, n, device, dtype):
        super().__init__()
        self.bias = nn.parameter.Parameter(torch.zeros(n)).to(device=device, dtype=dtype)  # expect: parameter-then-moved
    def forward(self, x):
        return x + self.bias


class PRight12(nn.Module):
    def __init__(self, n, device, dtype):
        super().__init__()
        self.bias = nn.parameter.Parameter(torch.zeros(n, device=device, dtype=dtype))
    def forward(self, x):
        return x + self.bias


class P13(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        emb = nn.Parameter(torch.empty(n, d))
        nn.init.normal_(emb)
        self.emb = emb.unsqueeze(0)  # expect: parameter-then-moved
    def forward(self, x):
        return x + self.emb


class PRight13(nn.Module):
    def __init__(self, n, d):
        super().__init__()
        emb = nn.Parameter(torch.empty(n, d))
        nn.init.normal_(emb)
        self.emb = emb
    def forward(self, x):
        return x + self.emb
