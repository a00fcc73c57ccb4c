"""The faults of autograd functions in the forms that models are written in."""

import math

import torch
from torch import nn
from torch.autograd import Function


class Scores(Function):
    @staticmethod
    def forward(ctx, query, key):
        scale = 1.0 / math.sqrt(query.shape[-1])
        half = query.size(-1) // 2
        ctx.save_for_backward(query, key, scale)  # expect: saved-non-tensor
        ctx.half = half
        return (query @ key.transpose(-1, -2)) * scale

    @staticmethod
    def backward(ctx, grad):
        query, key, scale = ctx.saved_tensors
        return (grad @ key) * scale, (grad.transpose(-1, -2) @ query) * scale


class Swish(Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.x, ctx.beta = x, beta  # expect: tensor-on-ctx
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def backward(ctx, grad):
        gate = torch.sigmoid(ctx.beta * ctx.x)
        return grad * (gate + ctx.beta * ctx.x * gate * (1 - gate)), None


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.result = x.exp()  # expect: tensor-on-ctx
        return ctx.result

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.result


class LowRank(Function):
    @staticmethod
    def forward(ctx, x, weight, down, up, bias=None, scale=1.0):
        ctx.save_for_backward(x, weight, down, up)
        ctx.scale = scale
        return x @ weight.t() + scale * (x @ down.t() @ up.t())

    @staticmethod
    def backward(ctx, grad):
        x, weight, down, up = ctx.saved_tensors
        grad_x = grad @ weight + ctx.scale * (grad @ up @ down)
        return grad_x, None, None, grad.t() @ x, None  # expect: gradient-count


class Enough(Function):
    """Five are enough for those who give five."""

    @staticmethod
    def forward(ctx, x, weight, scale=1.0):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight, grad.t() @ x


class Leaky(Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return torch.where(x > 0, x, slope * x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad_x = None
        if ctx.needs_input_grad[0]:
            grad_x = grad.clone()
            grad_x[x < 0] *= ctx.slope
        return grad_x  # expect: gradient-count


class Padded(Function):
    """The rest of the tuple is multiplied."""

    @staticmethod
    def forward(ctx, x, low, high, name):
        ctx.save_for_backward((x > low) & (x < high))
        ctx.width = int(x.shape[-1] * 2)
        return x.clamp(low, high)

    @staticmethod
    def backward(ctx, grad):
        (inside,) = ctx.saved_tensors
        return (grad * inside,) + (None,) * 3


class Binarize(Function):
    @staticmethod
    def forward(ctx, weight):
        return weight.sign()

    @staticmethod
    def backward(ctx, grad):
        return grad


class BinaryLinear(nn.Linear):
    binarize = Binarize()
    straight = staticmethod(Binarize.apply)

    def __init__(self, width):
        super().__init__(width, width)
        self.kind = Binarize
        self.ste = Binarize.apply

    def forward(self, x):
        weight = self.binarize(self.weight)  # expect: function-called-directly
        weight = weight + self.kind(self.weight)  # expect: function-called-directly
        return nn.functional.linear(x, self.straight(weight) + self.ste(weight), self.bias)


class Adapter(nn.Module):
    def __init__(self, width, rank, slope=0.1):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width, width))
        self.down = nn.Parameter(torch.randn(rank, width))
        self.up = nn.Parameter(torch.zeros(width, rank))
        self.bias = nn.Parameter(torch.zeros(width))
        self.slope = slope

    def forward(self, x):
        x = LowRank.apply(x, self.weight, self.down, self.up, self.bias, 2.0)
        return Enough.apply(Leaky.apply(x, self.slope), self.weight)


def test_by_name():
    dtype, exact = torch.float32, torch.float64
    kind = torch.float32
    x = torch.randn(2, 3, dtype=kind, requires_grad=True)
    assert torch.autograd.gradcheck(torch.sigmoid, x)  # expect: gradcheck-in-float32
    z = torch.randn(2, 3, dtype=exact, requires_grad=True)
    assert torch.autograd.gradcheck(torch.sigmoid, z), dtype


def test_listed():
    inputs = [torch.rand(3, 4).requires_grad_() for _ in range(2)]
    assert torch.autograd.gradcheck(torch.mul, inputs)  # expect: gradcheck-in-float32
    exact = [torch.rand(3, 4).double().requires_grad_() for _ in range(2)]
    assert torch.autograd.gradcheck(torch.mul, exact)


def test_both(kinds=(torch.float32, torch.float64)):
    for kind in kinds:
        x = torch.randn(2, dtype=kind, requires_grad=True)
        assert torch.autograd.gradcheck(torch.exp, x, eps=1e-3 if kind is torch.float32 else 1e-6)
