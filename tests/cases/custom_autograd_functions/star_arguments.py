"""The gradients of as many inputs as there are."""

"""A checkpoint of one's own: backward gives None and one gradient for each of *args, which is what apply() gets."""
import torch
from torch.utils.checkpoint import detach_variable


class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, function, *args):
        ctx.function = function
        with torch.no_grad():
            outputs = function(*args)
        ctx.save_for_backward(*args)
        return outputs

    @staticmethod
    def backward(ctx, *grads):
        inputs = detach_variable(ctx.saved_tensors)
        with torch.enable_grad():
            outputs = ctx.function(*inputs)
        torch.autograd.backward((outputs,), grads)
        found = tuple(x.grad if isinstance(x, torch.Tensor) else x for x in inputs)
        return (None,) + found


def again(function, *args):
    return Again.apply(function, *args)
