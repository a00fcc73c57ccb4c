"""A rectifier that needs no memory of its own: it writes into its input."""

import torch


class InPlace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.clamp_(min=0)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, gradient):
        (result,) = ctx.saved_tensors
        gradient[result == 0] = 0
        return gradient


def rectify(x):
    """Writes the result into X and gives it back."""
    return InPlace.apply(x)
