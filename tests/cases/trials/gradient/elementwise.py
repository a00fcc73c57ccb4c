"""Element by element: what the formula forgets, and formulas that are right."""

import torch
from torch.autograd import Function


# right
class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


# wrong: input=0 explains=factor
class SquareHalf(Square):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return x * grad


# wrong: input=0 explains=sign
class Cosine(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.cos(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.sin(x) * grad


# wrong: input=0 explains=term
class Ignores(Square):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x


# right
class Swish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        gate = torch.sigmoid(x)
        return grad * (gate + x * gate * (1 - gate))


# wrong: input=0
class SwishForgets(Swish):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        gate = torch.sigmoid(x)
        return grad * (gate + gate * (1 - gate))


# wrong: input=0
class SwishHalf(Swish):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.sigmoid(x)


# right
class LearnableSwish(Function):
    @staticmethod
    def forward(x, beta):
        return x * torch.sigmoid(beta * x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, beta = ctx.saved_tensors
        gate = torch.sigmoid(beta * x)
        slope = gate * (1 - gate)
        grad_x = grad * (gate + beta * x * slope) if ctx.needs_input_grad[0] else None
        grad_beta = (grad * x * x * slope).sum_to_size(beta.shape) if ctx.needs_input_grad[1] else None
        return grad_x, grad_beta


# wrong: input=1 explains=term
class LearnableSwishOnce(LearnableSwish):
    @staticmethod
    def backward(ctx, grad):
        x, beta = ctx.saved_tensors
        gate = torch.sigmoid(beta * x)
        slope = gate * (1 - gate)
        return grad * (gate + beta * x * slope), (grad * x * slope).sum_to_size(beta.shape)


# right
class Mish(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.tanh(torch.nn.functional.softplus(x))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        soft = torch.tanh(torch.nn.functional.softplus(x))
        return grad * (soft + x * torch.sigmoid(x) * (1 - soft * soft))


# wrong: input=0
class MishSquareless(Mish):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        soft = torch.tanh(torch.nn.functional.softplus(x))
        return grad * (soft + x * torch.sigmoid(x) * (1 - soft))


# wrong: input=0 explains=term
class Tanh(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * (1 - y)


# wrong: input=0
class SigmoidOfInput(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x * (1 - x)


# right
class Multiply(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * b, grad * a


# wrong: input=0 explains=swapped
class MultiplySwapped(Multiply):
    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * a, grad * b


# wrong: input=1 explains=sign
class Subtract(Function):
    @staticmethod
    def forward(ctx, a, b):
        return a - b

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


# wrong: input=1
class Divide(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a / b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad / b, -grad * a / b


# wrong: input=0 explains=term
class LogOfPower(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.log(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad


# right
class Root(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.sqrt(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad / (2 * y)


# right
class Relu(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x > 0)


def at_kinks():
    return torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0], dtype=torch.float64, requires_grad=True)


# right: --inputs elementwise.py:at_kinks
class ReluAtZero(Relu):
    pass


# wrong: input=0 -- --inputs elementwise.py:at_kinks
class ReluInverted(Relu):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x < 0)


# right: --inputs elementwise.py:at_kinks
class HardTanh(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * ((x >= -1) & (x <= 1))


# wrong: input=0
class HardTanhOpen(HardTanh):
    @staticmethod
    def backward(ctx, grad):
        return grad.clone()


# right: --inputs elementwise.py:at_kinks
class Absolute(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.abs()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.sign(x)


# right
class LeakyRelu(Function):
    @staticmethod
    def forward(ctx, x, negative_slope):
        ctx.save_for_backward(x)
        ctx.negative_slope = negative_slope
        return torch.where(x > 0, x, x * negative_slope)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, grad, grad * ctx.negative_slope), None


# wrong: input=0
class LeakyReluForgets(LeakyRelu):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, grad, grad * 0), None


# right
class Huber(Function):
    @staticmethod
    def forward(ctx, x, target, delta=1.0):
        error = x - target
        ctx.save_for_backward(error)
        ctx.delta = delta
        small = error.abs() <= delta
        return torch.where(small, error * error / 2, delta * (error.abs() - delta / 2)).mean()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (error,) = ctx.saved_tensors
        slope = error.clamp(-ctx.delta, ctx.delta) * grad / error.numel()
        return slope, -slope, None


# wrong: input=0 explains=factor
class HuberSum(Huber):
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        (error,) = ctx.saved_tensors
        slope = error.clamp(-ctx.delta, ctx.delta) * grad
        return slope, -slope, None
