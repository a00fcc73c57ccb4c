"""Gradients counted against inputs."""

import torch
from torch.amp import custom_bwd, custom_fwd
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class TooFew(Function):
    @staticmethod
    def forward(ctx, x, weight, bias, stride):
        ctx.save_for_backward(x, weight)
        return x @ weight + bias

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_x = grad_output @ weight.t()
        grad_weight = x.t() @ grad_output
        return grad_x, grad_weight, grad_output.sum(0)  # expect: gradient-count


class TooMany(Function):
    @staticmethod
    @custom_fwd(device_type="cuda")
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    @custom_bwd(device_type="cuda")
    def backward(ctx, grad_output):
        return grad_output, grad_output  # expect: gradient-count


class NeverReached(Function):
    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x)
        ctx.bounds = low, high
        return x.clamp(low, high)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        if not ctx.needs_input_grad[0]:
            return None  # never reached: x is the only input that may need a gradient
        (x,) = ctx.saved_tensors
        grad_input = grad_output * ((x > ctx.bounds[0]) & (x < ctx.bounds[1]))
        return grad_input, None, None


class WithSetup(Function):
    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, grad_output):
        grad = grad_output * ctx.factor
        return grad  # expect: gradient-count


class Exact(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        return ctx.factor * grad_output, None


class SpareNones(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * 2, None, None


class WithDefault(Function):
    @staticmethod
    def forward(ctx, x, alpha=1.0):
        ctx.alpha = alpha
        return x

    @staticmethod
    def backward(ctx, grad_output):
        return -ctx.alpha * grad_output


class AnyNumber(Function):
    @staticmethod
    def forward(ctx, dim, *tensors):
        return torch.stack(tensors, dim)

    @staticmethod
    def backward(ctx, grad_output):
        return (None, *grad_output.unbind(0))


class Computed(Function):
    @staticmethod
    def forward(ctx, run, length, x):
        ctx.length = length
        return x

    @staticmethod
    def backward(ctx, *grads):
        gradients = torch.autograd.grad(grads, grads)
        if ctx.length:
            return (None, None) + gradients
        return tuple([None] * 3)


class TupleInAName(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x + y

    @staticmethod
    def backward(ctx, grad_output):
        gradients = (grad_output, grad_output)
        return gradients


class NotAFunction:
    @staticmethod
    def forward(ctx, x, y):
        return x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class TwoTuplesJoined(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * y

    @staticmethod
    def backward(ctx, grad_output):
        first = torch.autograd.grad(ctx.out, ctx.x, grad_output, retain_graph=True)
        second = torch.autograd.grad(ctx.out, ctx.y, grad_output)
        return first + second


class PaddedTuple(Function):
    @staticmethod
    def forward(ctx, x, times, bias):
        return x * times

    @staticmethod
    def backward(ctx, grad_output):
        known = (grad_output,)
        rest = (None,) * 2
        return known + rest


class JoinedToWhatWasGiven(Function):
    @staticmethod
    def forward(ctx, x, times):
        return x * times

    @staticmethod
    def backward(ctx, *gradients):
        return gradients + ctx.nothing


class MethodOfTheGradient(Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.neg() * ctx.strength  # expect: gradient-count


class PiecesOfTheGradient(Function):
    @staticmethod
    def forward(ctx, x, y):
        return torch.cat([x, y])

    @staticmethod
    def backward(ctx, gradient):
        return gradient.chunk(2)


class NoGradientComesBack(Function):
    @staticmethod
    def forward(ctx, points, count):
        index = points.norm(dim=-1).topk(count).indices
        ctx.mark_non_differentiable(index)
        return index

    @staticmethod
    def backward(ctx, gradient):
        return ()
