"""Tests and branches of torch.where that have names of their own."""

import torch
from torch import nn
from torch.utils.data import Dataset


def safe_norm(v, floor=1e-12):
    square = v.pow(2).sum(-1)
    tiny = square <= floor
    return torch.where(tiny, torch.zeros_like(square), torch.sqrt(square))  # expect: nan-gradient-where


class Ratio(nn.Module):
    def forward(self, above, below):
        empty = below == 0
        ratio = above / below  # expect: nan-gradient-where
        return torch.where(empty, torch.zeros_like(ratio), ratio)


class RatioRight(nn.Module):
    def forward(self, above, below):
        empty = below == 0
        below = torch.where(empty, torch.ones_like(below), below)
        ratio = above / below
        return torch.where(empty, torch.zeros_like(ratio), ratio)


def angle(a, b):
    c = (a * b).sum(-1)
    inside = c.abs().lt(1.0)
    return torch.where(inside, torch.acos(c), torch.zeros_like(c))  # expect: nan-gradient-where


def angle_right(a, b):
    c = (a * b).sum(-1).clamp(-1 + 1e-6, 1 - 1e-6)
    inside = c.abs() < 1.0
    return torch.where(inside, torch.acos(c), torch.zeros_like(c))


def entropy_of_labels(labels, logits):
    return torch.where(labels > 0, labels * labels.log(), 0.0).sum() - (labels * logits).sum()


class Depths(Dataset):
    def __getitem__(self, index):
        depth = self.depths[index]
        return torch.where(depth > 0, 1.0 / depth, 0.0)


def evaluate(depth):
    return torch.where(depth > 0, 1.0 / depth, 0.0)


def floor_given(x, floor):
    low = x < floor
    return torch.where(low, x, x.sqrt())


def taylor(kappa):
    first = torch.where(kappa < 1e-5, 1 / kappa + kappa, kappa)
    return first, torch.where(kappa < 3.75, kappa, kappa - 0.5 * kappa.log())


def both_sides(x, ok):
    one = torch.where((x > 0) & ok, x.log(), 0.0)  # expect: nan-gradient-where
    other = torch.where(~(0 == x), 1 / x, 0.0)  # expect: nan-gradient-where
    return one, other, torch.where((x == 0) & ok, 0.0, 1 / x)
