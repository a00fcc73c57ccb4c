"""What forward keeps for backward, and what it does to its inputs."""

from typing import Optional

import fused_ops
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function


class ScaledTanh(Function):
    @staticmethod
    def forward(ctx, x: Tensor, scale: float) -> Tensor:
        y = torch.tanh(x * scale)
        ctx.save_for_backward(y, scale)  # expect: saved-non-tensor
        return y

    @staticmethod
    def backward(ctx, grad_output):
        y, scale = ctx.saved_tensors
        return grad_output * (1 - y * y) * scale, None


class Pool(Function):
    @staticmethod
    def forward(ctx, features, index, size):
        batch, channels, points = features.shape
        pooled = fused_ops.pool(features, index)
        ctx.save_for_backward(index, points)  # expect: saved-non-tensor
        ctx.sizes = batch, channels, size
        return pooled

    @staticmethod
    def backward(ctx, grad_output):
        index, points = ctx.saved_tensors
        return fused_ops.pool_backward(grad_output, index, points), None, None


class Shift(Function):
    @staticmethod
    def forward(ctx, x, steps):
        ctx.save_for_backward(steps)  # expect: saved-non-tensor
        return torch.roll(x, steps, dims=-1)

    @staticmethod
    def backward(ctx, grad_output):
        (steps,) = ctx.saved_tensors
        return torch.roll(grad_output, -steps, dims=-1), None


def shifted(x):
    return Shift.apply(x, 2)


class Clip(Function):
    @staticmethod
    def forward(x, low, high):
        return x.clamp(low, high)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, low, high = inputs
        ctx.save_for_backward(x, [low, high])  # expect: saved-non-tensor

    @staticmethod
    def backward(ctx, grad_output):
        x, (low, high) = ctx.saved_tensors
        return grad_output * ((x > low) & (x < high)), None, None


class KeepsFlagsOnCtx(Function):
    """Numbers, flags and shapes belong on ctx; tensors and None are saved."""

    @staticmethod
    def forward(ctx, x, weight, bias: Optional[Tensor], stride: int = 1, alpha=1.0):
        ctx.stride, ctx.alpha = stride, alpha
        ctx.shape = x.shape
        ctx.has_bias = bias is not None
        ctx.device = x.device
        out = F.conv2d(x, weight, bias, stride=stride)
        ctx.save_for_backward(x, weight, None)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        x, weight, _ = ctx.saved_tensors
        grad_x = torch.nn.grad.conv2d_input(x.shape, weight, grad_output, ctx.stride)
        grad_weight = torch.nn.grad.conv2d_weight(x, weight.shape, grad_output, ctx.stride)
        return grad_x, grad_weight, grad_output.sum((0, 2, 3)), None, None


class MadeATensorFirst(Function):
    @staticmethod
    def forward(ctx, x, factor: float):
        factor = torch.as_tensor(factor)
        sizes = torch.tensor(x.shape)
        ctx.save_for_backward(x, factor, sizes)
        return x * factor

    @staticmethod
    def backward(ctx, grad_output):
        _, factor, _ = ctx.saved_tensors
        return grad_output * factor, None


class AsksWhatItIs(Function):
    @staticmethod
    def forward(ctx, x, scale):
        if isinstance(scale, torch.Tensor):
            ctx.save_for_backward(x, scale)
        else:
            ctx.scale = scale
            ctx.save_for_backward(x)
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        scale = ctx.saved_tensors[1] if len(ctx.saved_tensors) > 1 else ctx.scale
        return grad_output * scale, None


def twice(x):
    return AsksWhatItIs.apply(x, 2.0)


class Leaky(Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x, slope)  # expect: saved-non-tensor
        return torch.where(x > 0, x, slope * x)

    @staticmethod
    def backward(ctx, grad_output):
        x, slope = ctx.saved_tensors
        return torch.where(x > 0, grad_output, slope * grad_output), None


class LeakyLayer(torch.nn.Module):
    def __init__(self, slope: float = 0.1):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return Leaky.apply(x, self.slope)


class Temperature(Function):
    @staticmethod
    def forward(ctx, x, temperature=1.0):
        ctx.save_for_backward(temperature)  # expect: saved-non-tensor
        return x / temperature

    @staticmethod
    def backward(ctx, grad_output):
        (temperature,) = ctx.saved_tensors
        return grad_output / temperature, None


class Blend(Function):
    @staticmethod
    def forward(ctx, x, y, share):
        ctx.kept = {"x": x, "share": share}  # expect: tensor-on-ctx
        return share * x + (1 - share) * y

    @staticmethod
    def backward(ctx, grad_output):
        grad_x = grad_output * ctx.kept["share"]
        return grad_x, grad_output - grad_x, None


class FusedNorm(Function):
    @staticmethod
    def forward(ctx, x, eps):
        normal = fused_ops.norm(x, eps)
        ctx.normal = normal  # expect: tensor-on-ctx
        return normal

    @staticmethod
    def backward(ctx, grad_output):
        grad_x = fused_ops.norm_backward(grad_output, ctx.normal)
        return grad_x, None


class LearnedScale(Function):
    @staticmethod
    def forward(ctx, x, scale=None):
        ctx.save_for_backward(x, scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad_output):
        x, scale = ctx.saved_tensors
        return grad_output * scale, (grad_output * x).sum()


class ScaleLayer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, x):
        return LearnedScale.apply(x, self.scale)


class Softplus(Function):
    @staticmethod
    def forward(ctx, x, beta):
        ctx.beta = beta
        ctx.x = x  # expect: tensor-on-ctx
        return torch.log1p(x.mul(beta).exp()) / beta

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * torch.sigmoid(ctx.beta * ctx.x), None


class Exponential(Function):
    @staticmethod
    def forward(ctx, x):
        result = x.exp()
        ctx.result = result  # expect: tensor-on-ctx
        return result

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.result


class Bilinear(Function):
    @staticmethod
    def forward(ctx, left: torch.Tensor, right: torch.Tensor):
        ctx.operands = (left, right)  # expect: tensor-on-ctx
        return left @ right

    @staticmethod
    def backward(ctx, grad_output):
        left, right = ctx.operands
        return grad_output @ right.t(), left.t() @ grad_output


class Cube(Function):
    @staticmethod
    def forward(x):
        return x.pow(3)

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.x = x  # expect: tensor-on-ctx

    @staticmethod
    def backward(ctx, grad_output):
        return 3 * ctx.x * ctx.x * grad_output


class KeepsWhatIsNeitherInputNorOutput(Function):
    @staticmethod
    def forward(ctx, x, eps):
        centred = x - x.mean(-1, keepdim=True)
        ctx.rstd = (centred.pow(2).mean(-1, keepdim=True) + eps).rsqrt()
        ctx.centred = centred
        ctx.eps = eps
        return centred * ctx.rstd

    @staticmethod
    def backward(ctx, grad_output):
        normal = ctx.centred * ctx.rstd
        grad = grad_output - grad_output.mean(-1, keepdim=True)
        return ctx.rstd * (grad - normal * (grad_output * normal).mean(-1, keepdim=True)), None


class LetsItGo(Function):
    """What backward takes off ctx again is meant so."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x.sigmoid()

    @staticmethod
    def backward(ctx, grad_output):
        s = torch.sigmoid(ctx.x)
        del ctx.x
        return grad_output * s * (1 - s)


class Recompute(Function):
    @staticmethod
    def forward(ctx, run_function, length, *args):
        ctx.run_function = run_function
        ctx.input_tensors = list(args[:length])
        with torch.no_grad():
            return ctx.run_function(*ctx.input_tensors)

    @staticmethod
    def backward(ctx, *gradients):
        with torch.enable_grad():
            out = ctx.run_function(*ctx.input_tensors)
        return (None, None, *torch.autograd.grad(out, ctx.input_tensors, gradients))


class UnknownInputs(Function):
    """A group, a module or a list of lengths: nothing says that these are tensors."""

    @staticmethod
    def forward(ctx, group, lengths, x):
        ctx.group = group
        ctx.lengths = lengths
        return fused_ops.gather(x, lengths, group)

    @staticmethod
    def backward(ctx, grad_output):
        return None, None, fused_ops.scatter(grad_output, ctx.lengths, ctx.group)


class GatherFromRanks(Function):
    """A process group has a size as well."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        gathered = [torch.empty_like(x) for _ in range(group.size())]
        torch.distributed.all_gather(gathered, x, group=group)
        return torch.cat(gathered)

    @staticmethod
    def backward(ctx, grad_output):
        torch.distributed.all_reduce(grad_output.clone(), group=ctx.group)
        return grad_output.chunk(ctx.group.size())[ctx.group.rank()], None


class LeakyInPlace(Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.slope = slope
        ctx.save_for_backward(x > 0)
        x.mul_(torch.where(x > 0, 1.0, slope))  # expect: dirty-not-marked
        return x

    @staticmethod
    def backward(ctx, grad_output):
        (positive,) = ctx.saved_tensors
        return torch.where(positive, grad_output, grad_output * ctx.slope), None


class ZeroPadding(Function):
    @staticmethod
    def forward(ctx, hidden: Tensor, mask: Tensor):
        ctx.save_for_backward(mask)
        out = hidden
        out[mask] = 0  # expect: dirty-not-marked
        return out

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad.masked_fill(mask, 0), None


class Relu(Function):
    @staticmethod
    def forward(ctx, x):
        out = F.relu(x, inplace=True)  # expect: dirty-not-marked
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        (out,) = ctx.saved_tensors
        return grad_output * (out > 0)


class AddInto(Function):
    @staticmethod
    def forward(ctx, total, part):
        torch.add(total, part, out=total)  # expect: dirty-not-marked
        return total

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, grad_output


class MarkedDirty(Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.slope = slope
        x.mul_(slope)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.slope, None


class WorksOnACopy(Function):
    @staticmethod
    def forward(ctx, x, mask):
        x = x.clone()
        x[mask] = 0
        x *= 2
        ctx.save_for_backward(mask)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        return 2 * grad_output.masked_fill(mask, 0), None


class RunningFigures(Function):
    """Buffers get no gradient: to change them is what they are for."""

    @staticmethod
    def forward(ctx, x, running_mean, momentum):
        mean = x.mean(0)
        running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
        momentum *= 0.5
        return x - mean

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output - grad_output.mean(0), None, None


class MaybeACopy(Function):
    @staticmethod
    def forward(ctx, x, inplace):
        out = x if inplace else torch.empty_like(x)
        y = x[x > 0]
        y.mul_(2)
        fused_ops.relu(x, out)
        return out

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output, None
