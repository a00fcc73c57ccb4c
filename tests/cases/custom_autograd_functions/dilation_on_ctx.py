"""A number, or a tensor, is kept on ctx."""

"""By its annotation d may be a tensor; every caller passes a number, and no gradient goes into d."""
from typing import Union

import torch


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a: torch.Tensor, b: torch.Tensor, d: Union[torch.Tensor, int]) -> torch.Tensor:
        ctx.save_for_backward(a, b)
        ctx.d = d
        return a * b * d

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b * ctx.d, grad * a * ctx.d, None


def attention(a, b):
    return Scaled.apply(a, b, 2)
