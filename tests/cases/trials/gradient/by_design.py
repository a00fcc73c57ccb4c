"""Gradients that are no derivatives on purpose, declared or not."""

import torch
from torch.autograd import Function


# right
class Round(Function):
    """Straight through: told, and not called."""

    @staticmethod
    def forward(ctx, x):
        return torch.round(x * 4) / 4

    @staticmethod
    def backward(ctx, grad):
        return grad.clone()


# right: --expect straight-through
class RoundDeclared(Round):
    pass


# wrong: order=backward -- --expect straight-through
class RoundHalf(Round):
    @staticmethod
    def backward(ctx, grad):
        return grad * 0.5


# right: --expect straight-through
class Binarize(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sign(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1)


# right
class Spike(Function):
    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx, grad):
        (v,) = ctx.saved_tensors
        return grad / (1 + 10 * v.abs()) ** 2


def through(x):
    return x + (torch.round(x * 4) / 4 - x).detach()


# right: --reference by_design.py:through
class RoundReferred(Round):
    pass


# wrong: input=0 explains=factor -- --reference by_design.py:through
class RoundReferredWrong(RoundHalf):
    pass


# wrong: input=0 explains=sign
class Reverse(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return -grad


# right: --expect reversed
class ReverseDeclared(Reverse):
    pass


def reversed_gradient(x):
    return 2 * x.detach() - x


# right: --reference by_design.py:reversed_gradient
class ReverseReferred(Reverse):
    pass


# wrong: input=0 explains=factor
class ScaleGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad * 0.1


# right: --expect scaled
class ScaleGradientDeclared(ScaleGradient):
    pass


# wrong: order=backward
class ClipGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad.clamp(-1, 1)


# right: --expect clipped
class ClipGradientDeclared(ClipGradient):
    pass


# right
class NoGradientForTarget(Function):
    @staticmethod
    def forward(ctx, x, target):
        ctx.save_for_backward(x, target)
        return ((x - target) ** 2).mean()

    @staticmethod
    def backward(ctx, grad):
        x, target = ctx.saved_tensors
        return grad * 2 * (x - target) / x.numel(), None
