"""Rows that are compared pair by pair."""

import torch


def pairwise(x: torch.Tensor):
    n = x.size(0)
    d = torch.zeros(n, n)
    for i in range(n):  # expect: python-loop-over-tensor
        for j in range(n):
            d[i, j] = (x[i] - x[j]).norm()
    return d
