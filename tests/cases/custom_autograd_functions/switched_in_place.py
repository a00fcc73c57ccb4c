"""Operations that work in place only when they are told to."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import Function


class SwitchedOff(Function):
    @staticmethod
    def forward(ctx, x):
        y = F.relu(x, inplace=False)
        y = nn.functional.dropout(y, 0.5, True, False)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * (y > 0) * 2


class SwitchedOnByPosition(Function):
    @staticmethod
    def forward(ctx, x):
        y = F.relu(x, True)  # expect: dirty-not-marked
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * (y > 0)


class SwitchedOnInDropout(Function):
    @staticmethod
    def forward(ctx, x):
        y = nn.functional.dropout(x, 0.5, inplace=True)  # expect: dirty-not-marked
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * (y != 0) * 2


class SwitchedOnInALayer(Function):
    @staticmethod
    def forward(ctx, x):
        y = nn.LeakyReLU(0.1, inplace=True)(x)  # expect: dirty-not-marked
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return torch.where(y > 0, grad_output, 0.1 * grad_output)


class Unknown(Function):
    @staticmethod
    def forward(ctx, x, inplace):
        y = F.relu(x, inplace=inplace)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad_output):
        (y,) = ctx.saved_tensors
        return grad_output * (y > 0), None


def scaled(x, factor, inplace=False):
    if inplace:
        x.mul_(factor)
        return x
    return x * factor


def halved(x, inplace=True):
    if not inplace:
        return x / 2
    return x.div_(2)


def shifted(x, inplace):
    return x.add_(1) if inplace else x + 1


class HelpersSwitchedOff(Function):
    @staticmethod
    def forward(ctx, x):
        return shifted(halved(scaled(x, 2, inplace=False), inplace=False), False)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class HelperLeftOff(Function):
    @staticmethod
    def forward(ctx, x):
        return scaled(x, 2)

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


class HelperSwitchedOn(Function):
    @staticmethod
    def forward(ctx, x):
        return scaled(x, 2, True)  # expect: dirty-not-marked

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output


class HelperOnByDefault(Function):
    @staticmethod
    def forward(ctx, x):
        return halved(x)  # expect: dirty-not-marked

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output / 2


class HelperSwitchedByWhoKnows(Function):
    @staticmethod
    def forward(ctx, x, settings):
        return shifted(x, settings.inplace)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


class OwnFlagLeftOff(Function):
    @staticmethod
    def forward(ctx, x, factor=2.0, inplace=False):
        ctx.factor = factor
        if inplace:
            x.mul_(factor)
            return x
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.factor, None, None


class OwnFlagSwitchedOn(Function):
    @staticmethod
    def forward(ctx, x, inplace=False):
        if inplace:
            x.mul_(2)  # expect: dirty-not-marked
            return x
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return 2 * grad_output, None


def used(x):
    return OwnFlagLeftOff.apply(x, 3.0) + OwnFlagSwitchedOn.apply(x.exp(), True)
