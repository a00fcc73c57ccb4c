"""Backward passes that hand on several gradients, which another function gives."""

from torch.autograd import Function
from torch.nn.parallel._functions import Broadcast


class Add(Function):
    @staticmethod
    def forward(ctx, *inputs):
        ctx.devices = [each.get_device() for each in inputs]
        return sum(inputs)

    @staticmethod
    def backward(ctx, grad):
        return Broadcast.apply(ctx.devices, grad)


def total(a, b, c):
    return Add.apply(a, b, c)
