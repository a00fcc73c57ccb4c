"""Right by itself, wrong in a situation; and what is right in all of them."""

import numpy
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


# wrong: order=in-place
class ScaleInPlace(Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        x.mul_(factor)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor, None


# right
class ScaleInPlaceMarked(ScaleInPlace):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        x.mul_(factor)
        ctx.mark_dirty(x)
        return x


# wrong: order=in-place
class ClampsItsInput(Function):
    @staticmethod
    def forward(ctx, x):
        x.clamp_(min=0)
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 2 * (x > 0)


# wrong: order=in-place
class EditsGradient(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        grad[x < 0] = 0
        return grad


# wrong: order=in-place
class ScalesGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 3

    @staticmethod
    def backward(ctx, grad):
        return grad.mul_(3)


# wrong: order=in-place
class EatsWhatItSaved(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.no_grad():
            return x.mul_(2).mul(grad)


# wrong: order=backward
class RemembersOnTheClass(Function):
    @staticmethod
    def forward(ctx, x):
        RemembersOnTheClass.x = x.detach().clone()
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * RemembersOnTheClass.x * grad


KEPT = []


# wrong: order=backward
class RemembersInAList(Function):
    @staticmethod
    def forward(ctx, x):
        KEPT.append(x.detach().clone())
        return torch.exp(x)

    @staticmethod
    def backward(ctx, grad):
        return torch.exp(KEPT[-1]) * grad


# wrong: order=view
class FlattensGradient(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad.view(-1).mul(2).view(ctx.shape)


# wrong: order=view
class ReadsGradientRaw(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raw = torch.as_strided(grad, grad.shape, torch.empty(grad.shape).stride())
        return raw * 2


# wrong: order=view
class ReadsInputRaw(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        raw = torch.as_strided(x, x.shape, torch.empty(x.shape).stride(), 0)
        return 2 * raw * grad


# right
class Contiguous(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return (grad.contiguous().view(-1) * 2).view(grad.shape)


# right
class ViewOut(Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


# wrong: order=backward
class TwoOutputs(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return torch.sin(x), torch.cos(x)

    @staticmethod
    def backward(ctx, by_sin, by_cos):
        (x,) = ctx.saved_tensors
        return by_sin * torch.cos(x) - by_cos * torch.sin(x)


# wrong: order=backward
class TwoOutputsFirstOnly(TwoOutputs):
    @staticmethod
    def backward(ctx, by_sin, by_cos):
        (x,) = ctx.saved_tensors
        found = torch.zeros_like(x)
        if by_sin is not None:
            found = found + by_sin * torch.cos(x)
        elif by_cos is not None:
            found = found - by_cos * torch.sin(x)
        return found


# right
class TwoOutputsRight(TwoOutputs):
    @staticmethod
    def backward(ctx, by_sin, by_cos):
        (x,) = ctx.saved_tensors
        found = torch.zeros_like(x)
        if by_sin is not None:
            found = found + by_sin * torch.cos(x)
        if by_cos is not None:
            found = found - by_cos * torch.sin(x)
        return found


# wrong: order=double-backward
class DetachedCube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 3 * x.detach() ** 2 * grad


# wrong: order=double-backward
class QuietCube(DetachedCube):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with torch.no_grad():
            return 3 * x**2 * grad


# wrong: order=double-backward
class SavesWhatItComputed(Function):
    @staticmethod
    def forward(ctx, x):
        gate = torch.sigmoid(x)
        ctx.save_for_backward(gate, x)
        return gate * x

    @staticmethod
    def backward(ctx, grad):
        gate, x = ctx.saved_tensors
        return grad * (gate + x * gate * (1 - gate))


class CubeSlope(Function):
    @staticmethod
    def forward(ctx, x, grad):
        ctx.save_for_backward(x, grad)
        return 3 * x**2 * grad

    @staticmethod
    def backward(ctx, second):
        x, grad = ctx.saved_tensors
        return 3 * x * grad * second, 3 * x**2 * second


# wrong: order=double-backward
class CubeInTwoParts(DetachedCube):
    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return CubeSlope.apply(x, grad)


# right
class OnceOnly(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(numpy.exp(x.detach().numpy()))

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.from_numpy(numpy.exp(x.numpy()))


# wrong: order=forward-mode
class ForwardMode(Function):
    @staticmethod
    def forward(x, y):
        return torch.sin(x) * y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * torch.cos(x) * y, grad * torch.sin(x)

    @staticmethod
    def jvp(ctx, dx, dy):
        x, y = ctx.saved_tensors
        return torch.cos(x) * y * dx


# wrong: order=forward-mode explains=sign
class ForwardModeSign(ForwardMode):
    @staticmethod
    def jvp(ctx, dx, dy):
        x, y = ctx.saved_tensors
        return -(torch.cos(x) * y * dx + torch.sin(x) * dy)


# right
class ForwardModeRight(ForwardMode):
    @staticmethod
    def jvp(ctx, dx, dy):
        x, y = ctx.saved_tensors
        return torch.cos(x) * y * dx + torch.sin(x) * dy


# wrong: order=batched
class OwnVmap(Function):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad

    @staticmethod
    def vmap(info, in_dims, x):
        return OwnVmap.apply(x), 0


# right
class OwnVmapRight(OwnVmap):
    @staticmethod
    def vmap(info, in_dims, x):
        return OwnVmapRight.apply(x), in_dims[0]


# wrong: order=autocast
class HalfDecorated(Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu")
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.t(), x.t() @ grad


# right
class Decorated(HalfDecorated):
    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.t(), x.t() @ grad


# right
class CastInputs(HalfDecorated):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    @torch.amp.custom_bwd(device_type="cpu")
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return grad @ weight.t(), x.t() @ grad


# wrong: order=autocast
class ScaledForHalf(Function):
    @staticmethod
    def forward(ctx, x, weight):
        out = x @ weight
        ctx.save_for_backward(x, weight)
        ctx.half = out.dtype == torch.bfloat16
        return out

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        grad = grad.to(x.dtype) * (128 if ctx.half else 1)
        return grad @ weight.t(), x.t() @ grad


# right
class Dropout(Function):
    @staticmethod
    def forward(ctx, x, p=0.5):
        mask = (torch.rand_like(x) > p).to(x.dtype) / (1 - p)
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * mask, None


# wrong: input=0
class DropoutDrawnAgain(Dropout):
    @staticmethod
    def backward(ctx, grad):
        return grad * (torch.rand_like(grad) > 0.5).to(grad.dtype) * 2, None


# right
class RunningMean(Function):
    @staticmethod
    def forward(ctx, x, mean):
        mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2, None


# right
class BigSum(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return (x * 1e6).sum().reshape(1)

    @staticmethod
    def backward(ctx, grad):
        return (grad * 1e6).expand(ctx.shape)


# right
class InSingle(Function):
    """Computes in float32 whatever it is given."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(x.float()).to(x.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.exp(x.float()).to(x.dtype)


# wrong: input=0 explains=factor
class InSingleWrong(InSingle):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 1.1 * grad * torch.exp(x.float()).to(x.dtype)


BUFFER = torch.zeros(3, 4, dtype=torch.float64)


# wrong: order=in-place -- --shapes "3,4"
class OneBufferBack(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        with torch.no_grad():
            return torch.mul(grad, 2 * torch.rand(()) * 0 + 2, out=BUFFER)


# wrong: order=backward -- --shapes "3,4"
class OneBufferForward(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.exp(x, out=BUFFER).detach() if x.dtype == torch.float64 else torch.exp(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * torch.exp(x)


# wrong: order=view
class WritesIntoSaved(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        y = y.clone(memory_format=torch.preserve_format) if y.is_contiguous() else torch.as_strided(y, y.shape, (y.shape[-1], 1), 0)
        return grad * y, grad * x


# right
class VmapGenerated(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, w):
        return (x * w).sum(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad.unsqueeze(-1) * w, grad.unsqueeze(-1) * x
