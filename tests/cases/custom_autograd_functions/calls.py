"""How autograd functions are declared, called and checked."""

import torch
from torch import nn
from torch.autograd import Function, gradcheck
from torch.autograd.gradcheck import gradgradcheck


class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * s * (1 + x * (1 - s))


class Hard(Function):
    @staticmethod
    def forward(ctx, x, slope):
        return (x * slope).clamp(0, 1)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


class Step(Function):
    @staticmethod
    def forward(ctx, x, threshold):
        return (x > threshold).to(x.dtype)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


class Clamp(Function):
    @staticmethod
    def forward(ctx, x, threshold):
        return x.clamp(max=threshold)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None


class Legacy(Function):
    def __init__(self, factor):
        self.factor = factor

    def forward(self, x):  # expect: backward-not-static
        return x * self.factor

    def backward(self, grad_output):
        return grad_output * self.factor


class HalfStatic(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    def backward(ctx, grad_output):  # expect: backward-not-static
        return -grad_output


class MadeStaticBelow(Function):
    def forward(ctx, x):
        return x.clone()

    def backward(ctx, grad_output):
        return -grad_output

    forward = staticmethod(forward)
    backward = staticmethod(backward)


class Activations(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.swish = Swish()
        self.apply_swish = Swish.apply

    def forward(self, x):
        x = self.linear(x)
        x = self.swish(x)  # expect: function-called-directly
        x = Swish()(x)  # expect: function-called-directly
        x = Swish.forward(x)  # expect: function-called-directly
        return self.apply_swish(x)


class ByHand(nn.Module):
    def forward(self, x):
        return Step.forward(None, x, 0.2)  # expect: function-called-directly


class Gate(nn.Module):
    def forward(self, x, threshold):
        return x * Clamp(x, threshold)  # expect: function-called-directly


def old_style(x):
    return Legacy(0.5)(x)  # expect: function-called-directly


def reference(x):
    """The way in, a partial and a wrapper: all are meant so."""
    swish = Swish.apply
    y = swish(x)
    y = Swish.apply(y)
    return HalfStatic.apply(y)


class Fast(nn.Module):
    def forward(self, x):
        if torch.is_grad_enabled():
            return Swish.apply(x)
        return Swish.forward(None, x)  # expect: function-called-directly


class Both(Function):
    @staticmethod
    def forward(ctx, x):
        return Swish.forward(ctx, x)

    @staticmethod
    def backward(ctx, grad_output):
        return Swish.backward(ctx, grad_output)


class NoFunction:
    def forward(self, x):
        return x

    def __call__(self, x):
        return self.forward(x)


class SaysWhatCallingMeans(Function):
    def __call__(self, x):
        return type(self).apply(x)

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        return -grad_output


def others(x):
    x = SaysWhatCallingMeans()(x)
    return NoFunction()(NoFunction().forward(x))


def check_single():
    x = torch.randn(4, 3, requires_grad=True)
    assert gradcheck(Swish.apply, (x,))  # expect: gradcheck-in-float32


def check_single_in_place(device):
    weight = torch.rand(3, 3, device=device)
    weight.requires_grad = True
    inputs = (weight, 0.2)
    ok = gradcheck(Hard.apply, inputs, eps=1e-6, atol=1e-4)  # expect: gradcheck-in-float32
    print("Hard is right:", ok)


def check_second_order():
    x = torch.tensor([0.3, -0.2], dtype=torch.float32, requires_grad=True).to("cpu")
    return torch.autograd.gradgradcheck(Swish.apply, [x])  # expect: gradcheck-in-float32


def check_double(device):
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    y = torch.randn(4, 3).double().requires_grad_()
    z = torch.randn(4, 3, device=device, requires_grad=True).to(torch.double)
    return gradcheck(Swish.apply, (x,)) and gradcheck(Swish.apply, y) and gradgradcheck(Swish.apply, (z,))


def check_with_a_coarse_step():
    x = torch.randn(4, 3, requires_grad=True)
    return gradcheck(Swish.apply, (x,), eps=1e-3, atol=1e-2)


def check_the_double_one_only():
    x = torch.randn(4, 3, dtype=torch.double, requires_grad=True)
    slope = torch.rand(1)
    return gradcheck(Hard.apply, (x, slope))


def check_of_unknown(make, dtype):
    x = make(4, 3)
    y = torch.randn(4, 3, dtype=dtype, requires_grad=True)
    w = torch.randn(3, requires_grad=True)
    w = w.type(dtype)
    return gradcheck(Swish.apply, (x, y, w))
