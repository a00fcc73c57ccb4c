"""Exponentials of negated distances, which never overflow, beside one of a difference, which does."""

import torch
import torch.nn.functional as F


def soft_dist(x, c):
    d = torch.cdist(x, c)
    return torch.log(1 + torch.exp(-d)).sum()


def student_t(x, c):
    q = 1.0 / (1.0 + torch.cdist(x, c) ** 2)
    return q / q.sum(1, keepdim=True)


def energy(r):
    return torch.log(1 + r ** 2)


def focal(logits, y):
    p = torch.sigmoid(logits).clamp(1e-6, 1 - 1e-6)
    return -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()


def att(mask, s):
    w = torch.exp(s - s.amax(-1, keepdim=True)) * mask
    return w / w.sum(-1, keepdim=True)


def kernel(d2, gamma):
    k = torch.exp(-gamma * d2)
    return k / k.sum(1, keepdim=True)


def ranking(pos, neg):
    return torch.log(1 + torch.exp(neg - pos)).mean()  # expect: unstable-composition
