"""A function that gives indices: no backward is called."""

import torch
from torch.autograd import Function


class Nearest(Function):
    @staticmethod
    def forward(ctx, points: torch.Tensor, counts: torch.Tensor, k: int):
        index = torch.zeros(points.shape[0], k, dtype=torch.int32, device=points.device)
        return index

    @staticmethod
    def backward(ctx, grad=None):
        return None, None


nearest = Nearest.apply


def pick(points: torch.Tensor, counts: torch.Tensor):
    return points[nearest(points, counts, 1)[:, 0].long()]
