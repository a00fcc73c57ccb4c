"""Products, sums and layouts of several dimensions."""

import torch
from torch import nn
from torch.autograd import Function
from torch.nn import functional as F


# right
class Linear(Function):
    @staticmethod
    def forward(ctx, x, weight, bias=None):
        ctx.save_for_backward(x, weight, bias)
        out = x @ weight.t()
        return out if bias is None else out + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        grad_x = grad @ weight if ctx.needs_input_grad[0] else None
        grad_weight = grad.t() @ x if ctx.needs_input_grad[1] else None
        grad_bias = grad.sum(0) if bias is not None and ctx.needs_input_grad[2] else None
        return grad_x, grad_weight, grad_bias


# right: --shapes "6,4;3,4;3"
class LinearGiven(Linear):
    pass


# wrong: input=2 explains=factor -- --shapes "6,4;3,4;3"
class LinearMeanBias(Linear):
    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        return grad @ weight, grad.t() @ x, grad.mean(0)


# wrong: input=2 explains=missing-reduction -- --shapes "6,4;3,4;3"
class LinearFirstRow(Linear):
    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        return grad @ weight, grad.t() @ x, grad[0]


# wrong: input=1 explains=transpose -- --shapes "6,4;3,4;3"
class LinearTransposed(Linear):
    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        return grad @ weight, x.t() @ grad, grad.sum(0)


# wrong: input=1 explains=transpose -- --shapes "6,4;4,4;4"
class LinearSquareTransposed(LinearTransposed):
    pass


# wrong: input=0 explains=transpose -- --shapes "4,4;4,4;4"
class LinearSquareInput(Linear):
    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        return (grad @ weight).t(), grad.t() @ x, grad.sum(0)


def declared():
    made = torch.Generator().manual_seed(4)
    shapes = ((6, 4), (3, 4), (3,))
    return tuple(torch.randn(*each, generator=made, dtype=torch.float64).requires_grad_() for each in shapes)


# wrong: input=2 explains=cut -- --inputs matrices.py:declared
class LinearNoBias(Linear):
    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        return grad @ weight, grad.t() @ x, None


# wrong: input=2 explains=cut -- --shapes "6,4;3,4;3"
class LinearZeroBias(Linear):
    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        return grad @ weight, grad.t() @ x, torch.zeros_like(bias)


# wrong: order=needs-input-grad -- --shapes "6,4;3,4;3"
class LinearMixedUp(Linear):
    @staticmethod
    def backward(ctx, grad):
        x, weight, bias = ctx.saved_tensors
        grad_x = grad @ weight if ctx.needs_input_grad[0] else None
        grad_weight = grad.t() @ x if ctx.needs_input_grad[0] else None
        return grad_x, grad_weight, grad.sum(0)


# wrong: order=needs-input-grad -- --shapes "6,4;3,4"
class LinearUnbound(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        if ctx.needs_input_grad[0]:
            grad_x = grad @ weight
            product = grad.t()
        return (grad_x if ctx.needs_input_grad[0] else None), product @ x


# wrong: order=needs-input-grad
class SavedWhenNeeded(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a if ctx.needs_input_grad[0] else None, b if ctx.needs_input_grad[1] else None)
        return a * b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return (grad * b if b is not None else None), (grad * a if a is not None else None)


# right
class SumOfAll(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.sum()

    @staticmethod
    def backward(ctx, grad):
        return grad.expand(ctx.shape)


# wrong: input=0 explains=factor
class MeanAsSum(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.mean()

    @staticmethod
    def backward(ctx, grad):
        return grad.expand(ctx.shape)


# wrong: input=0 explains=factor
class RowMean(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.mean(1)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad.unsqueeze(1).expand_as(x) / x.numel()


# right: --shapes "40,60"
class LogSumExp(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.logsumexp(x, 1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad.unsqueeze(1) * torch.exp(x - y.unsqueeze(1))


# wrong: input=0 -- --shapes "40,60"
class LogSumExpOtherDimension(LogSumExp):
    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad.unsqueeze(1) * torch.softmax(x, 0)


# right
class Softmax(Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return y * (grad - (grad * y).sum(-1, keepdim=True))


# wrong: input=0
class SoftmaxDiagonal(Softmax):
    @staticmethod
    def backward(ctx, grad):
        (y,) = ctx.saved_tensors
        return grad * y * (1 - y)


# right
class LayerNorm(Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps=1e-5):
        centred = x - x.mean(-1, keepdim=True)
        inverse = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, weight)
        ctx.eps = eps
        return centred * inverse * weight + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        centred = x - x.mean(-1, keepdim=True)
        inverse = torch.rsqrt(centred.square().mean(-1, keepdim=True) + ctx.eps)
        hat = centred * inverse
        inner = grad * weight
        grad_x = inner - inner.mean(-1, keepdim=True) - hat * (inner * hat).mean(-1, keepdim=True)
        rest = tuple(range(grad.dim() - 1))
        return grad_x * inverse, (grad * hat).sum(rest), grad.sum(rest), None


# wrong: input=0 -- --reference matrices.py:layer_norm
class LayerNormNoMean(LayerNorm):
    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        centred = x - x.mean(-1, keepdim=True)
        inverse = torch.rsqrt(centred.square().mean(-1, keepdim=True) + ctx.eps)
        hat = centred * inverse
        inner = grad * weight
        grad_x = inner - hat * (inner * hat).mean(-1, keepdim=True)
        return grad_x * inverse, (grad * hat).sum(0), grad.sum(0), None


def layer_norm(x, weight, bias):
    return F.layer_norm(x, x.shape[-1:], weight, bias)


# right: --reference matrices.py:layer_norm --shapes "3,4;4;4"
class LayerNormReferred(LayerNorm):
    pass


# right
class Conv(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return F.conv2d(x, weight, padding=1)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        grad_x = nn.grad.conv2d_input(x.shape, weight, grad, padding=1)
        return grad_x, nn.grad.conv2d_weight(x, weight.shape, grad, padding=1)


# wrong: input=0
class ConvPadded(Conv):
    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        grad_x = F.conv_transpose2d(grad, weight.flip(2), padding=1)
        return grad_x, nn.grad.conv2d_weight(x, weight.shape, grad, padding=1)


# right
class Transpose(Function):
    @staticmethod
    def forward(ctx, x):
        return x.t()

    @staticmethod
    def backward(ctx, grad):
        return grad.t()


# wrong: input=0 explains=transpose -- --shapes "4,4"
class TransposeForgets(Transpose):
    @staticmethod
    def backward(ctx, grad):
        return grad.clone()


# wrong: input=0 explains=transpose -- --shapes "3,5"
class Reshaped(Transpose):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.t().contiguous()

    @staticmethod
    def backward(ctx, grad):
        return grad.reshape(ctx.shape)


# wrong: input=0
class Flip(Function):
    @staticmethod
    def forward(ctx, x):
        return x.flip(0)

    @staticmethod
    def backward(ctx, grad):
        return grad.clone()


# wrong: input=0
class RollBack(Function):
    @staticmethod
    def forward(ctx, x):
        return x.roll(1, 0)

    @staticmethod
    def backward(ctx, grad):
        return grad.roll(1, 0)


# right
class Gather(Function):
    @staticmethod
    def forward(ctx, x, index):
        ctx.save_for_backward(index)
        ctx.shape = x.shape
        return x[index]

    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        return grad.new_zeros(ctx.shape).index_add(0, index, grad), None


def repeated():
    x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    return x, torch.tensor([0, 2, 2, 4])


# right: --inputs matrices.py:repeated
class GatherGiven(Gather):
    pass


# wrong: input=0 -- --inputs matrices.py:repeated
class GatherOverwrites(Gather):
    @staticmethod
    def backward(ctx, grad):
        (index,) = ctx.saved_tensors
        found = grad.new_zeros(ctx.shape)
        found[index] = grad
        return found, None


# right
class Maximum(Function):
    @staticmethod
    def forward(ctx, x):
        values, indices = x.max(1)
        ctx.save_for_backward(indices)
        ctx.shape = x.shape
        ctx.mark_non_differentiable(indices)
        return values, indices

    @staticmethod
    def backward(ctx, grad, _):
        (indices,) = ctx.saved_tensors
        return grad.new_zeros(ctx.shape).scatter(1, indices.unsqueeze(1), grad.unsqueeze(1))


# wrong: input=0
class CumulativeSum(Function):
    @staticmethod
    def forward(ctx, x):
        return x.cumsum(0)

    @staticmethod
    def backward(ctx, grad):
        return grad.cumsum(0)


# right
class Outer(Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        return grad * scale, grad * x  # the engine sums what was broadcast


# wrong: input=1 -- --shapes "3,4;4"
class BroadcastMaximum(Outer):
    @staticmethod
    def backward(ctx, grad):
        x, scale = ctx.saved_tensors
        return grad * scale, (grad * x).amax(0)


# right: --shapes "complex:3,4"
class ComplexSquare(Function):
    @staticmethod
    def forward(ctx, z):
        ctx.save_for_backward(z)
        return z * z

    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        return grad * (2 * z).conj()


# wrong: input=0 -- --shapes "complex:3,4"
class ComplexNotConjugated(ComplexSquare):
    @staticmethod
    def backward(ctx, grad):
        (z,) = ctx.saved_tensors
        return grad * 2 * z


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1, 1, 12).reshape(3, 4))

    def forward(self, x):
        return torch.relu(Linear.apply(x, self.weight))


# right: --shapes "5,4"
def block():
    return Block()


class WrongBlock(Block):
    def forward(self, x):
        return torch.relu(LinearMeanBias.apply(x, self.weight, self.weight.sum(1)))


# wrong: input=1 -- --shapes "5,4"
def wrong_block():
    return WrongBlock()


# right: --shapes "4,3;int<3:4"
class CrossEntropy(Function):
    @staticmethod
    def forward(ctx, logits, target):
        logp = torch.log_softmax(logits, 1)
        ctx.save_for_backward(logits, target)
        return -logp.gather(1, target.unsqueeze(1)).mean()

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        there = F.one_hot(target, logits.shape[1])
        return grad * (torch.softmax(logits, 1) - there) / len(target), None


# wrong: input=0 explains=factor -- --shapes "4,3;int<3:4"
class CrossEntropySum(CrossEntropy):
    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        there = F.one_hot(target, logits.shape[1])
        return grad * (torch.softmax(logits, 1) - there), None


# wrong: input=0 -- --shapes "4,3;int<3:4"
class CrossEntropySmooth(CrossEntropy):
    @staticmethod
    def forward(ctx, logits, target):
        logp = torch.log_softmax(logits, 1)
        ctx.save_for_backward(logits, target)
        return -0.9 * logp.gather(1, target.unsqueeze(1)).mean() - 0.1 * logp.mean()


# right: --shapes "4,3;int<2:4"
class Focal(Function):
    @staticmethod
    def forward(ctx, logits, target, gamma=2.0):
        p = torch.softmax(logits, 1).gather(1, target.unsqueeze(1))
        ctx.save_for_backward(logits, target)
        ctx.gamma = gamma
        return -((1 - p) ** gamma * torch.log(p)).mean()

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        q = torch.softmax(logits, 1)
        p = q.gather(1, target.unsqueeze(1))
        gamma = ctx.gamma
        by_p = gamma * (1 - p) ** (gamma - 1) * torch.log(p) - (1 - p) ** gamma / p
        there = F.one_hot(target, logits.shape[1])
        return grad * by_p * p * (there - q) / len(target), None, None


# wrong: input=0 -- --shapes "4,3;int<2:4"
class FocalForgets(Focal):
    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        q = torch.softmax(logits, 1)
        p = q.gather(1, target.unsqueeze(1))
        there = F.one_hot(target, logits.shape[1])
        return grad * (1 - p) ** ctx.gamma * (q - there) / len(target), None, None


# right
class SparseMax(Function):
    @staticmethod
    def forward(ctx, z):
        ordered, _ = torch.sort(z, -1, descending=True)
        count = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
        inside = 1 + count * ordered > ordered.cumsum(-1)
        size = inside.sum(-1, keepdim=True)
        tau = (ordered.cumsum(-1).gather(-1, size - 1) - 1) / size
        out = (z - tau).clamp(min=0)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        there = (out > 0).to(grad.dtype)
        mean = (grad * there).sum(-1, keepdim=True) / there.sum(-1, keepdim=True)
        return there * (grad - mean)


# wrong: input=0
class SparseMaxAllMean(SparseMax):
    @staticmethod
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        there = (out > 0).to(grad.dtype)
        return there * (grad - grad.mean(-1, keepdim=True))


# right: --shapes "5,6;unit:4"
class Sample(Function):
    """Linear interpolation of the rows at positions from 0 to 1."""

    @staticmethod
    def forward(ctx, rows, at):
        place = at * (rows.shape[0] - 1)
        low = place.floor().long().clamp(max=rows.shape[0] - 2)
        part = (place - low).unsqueeze(1)
        ctx.save_for_backward(rows, low, part)
        return rows[low] * (1 - part) + rows[low + 1] * part

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        rows, low, part = ctx.saved_tensors
        found = torch.zeros_like(rows).index_add(0, low, grad * (1 - part)).index_add(0, low + 1, grad * part)
        return found, (grad * (rows[low + 1] - rows[low])).sum(1) * (rows.shape[0] - 1)


# wrong: input=1 explains=factor -- --shapes "5,6;unit:4"
class SampleNotScaled(Sample):
    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        rows, low, part = ctx.saved_tensors
        found = torch.zeros_like(rows).index_add(0, low, grad * (1 - part)).index_add(0, low + 1, grad * part)
        return found, (grad * (rows[low + 1] - rows[low])).sum(1)
