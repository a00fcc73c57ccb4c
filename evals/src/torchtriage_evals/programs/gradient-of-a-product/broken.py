"""A product whose weight gradient is bounded: each of its elements is clipped to [-1, 1], that of the input is not."""

import torch


class Bounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        for_x = gradient @ weight
        for_weight = gradient.T @ x
        return for_x.clamp(-1, 1), for_weight.clamp(-1, 1)


def bounded(x, weight):
    """X (n, i) times WEIGHT (i, o)."""
    return Bounded.apply(x, weight)
