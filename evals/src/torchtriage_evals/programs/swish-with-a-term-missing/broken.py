"""An activation with a slope that is learned: x * sigmoid(beta * x)."""

import torch


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        gate = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, beta, gate)
        return x * gate

    @staticmethod
    def backward(ctx, gradient):
        x, beta, gate = ctx.saved_tensors
        slope = gate * (1 - gate)
        return gradient * (gate + x * slope), gradient * x * x * slope


def swish(x, beta):
    """X of any shape, BETA of one element."""
    return Swish.apply(x, beta)
