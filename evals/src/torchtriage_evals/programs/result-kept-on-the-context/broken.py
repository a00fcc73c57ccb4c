"""An exponential with a backward of its own, which needs the result."""

import torch


class Exponential(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.result = torch.exp(x)
        return ctx.result

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.result


def exponential(x):
    return Exponential.apply(x)
