"""Compositions inside of losses, heads and attention."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.functional import softmax


class InfoNCE(nn.Module):
    def __init__(self, t=0.1):
        super().__init__()
        self.t = t

    def forward(self, z1, z2):
        sim = z1 @ z2.t() / self.t
        exp = sim.exp()
        return -(exp.diag() / exp.sum(1)).log().mean()  # expect: unstable-composition


def a(logits, labels):
    p = softmax(logits, dim=-1)
    return -p[torch.arange(len(labels)), labels].log().mean()  # expect: unstable-composition


def b(logits):
    prob = torch.sigmoid(logits)
    return -torch.log(prob).mean()  # expect: unstable-composition


def c(energies):
    return torch.log(torch.exp(-energies).sum(dim=1)).mean()  # expect: unstable-composition


def d(logits, t):
    probs = logits.softmax(-1)
    logp = torch.log(probs)  # expect: unstable-composition
    return F.kl_div(logp, t)


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.Sigmoid()
        self.fc = nn.Linear(3, 1)

    def forward(self, x, y):
        p = self.act(self.fc(x)).squeeze(1)
        return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()  # expect: unstable-composition


def e(scores, mask):
    weights = torch.exp(scores) * mask
    return weights / weights.sum(-1, keepdim=True)  # expect: unstable-composition


def f(x):
    return torch.log(1 + x.exp()), (1 + torch.exp(x)).log()  # expect: unstable-composition


def g(x):
    num = torch.exp(x)
    den = torch.sum(torch.exp(x), dim=-1, keepdim=True)
    return torch.log(num / den)  # expect: unstable-composition


def nt_xent(z, t):
    sim = torch.exp(z @ z.T / t)
    mask = 1 - torch.eye(len(z))
    denom = (sim * mask).sum(dim=1)
    pos = torch.cat([torch.diag(sim, 4), torch.diag(sim, -4)])
    return -torch.log(pos / denom).mean()  # expect: unstable-composition


class Att(nn.Module):
    def forward(self, q, k, v):
        a = torch.exp(q @ k.transpose(-1, -2) / q.size(-1) ** 0.5)
        a = a / a.sum(-1, keepdim=True)  # expect: unstable-composition
        return a @ v


def masked_again_and_again(x, mask, rounds):
    e = torch.exp(x)
    for _ in range(rounds):
        e = e * mask
    return e / e.sum(-1)  # expect: unstable-composition
