"""What backward does with the gradient that it is given, and under autocast."""

import torch
import torch.nn.functional as F
from torch.amp import custom_bwd, custom_fwd
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Rectify(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_input = grad_output
        grad_input[x < 0] = 0  # expect: grad-output-edited
        return grad_input


class Reverse(Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        grad_output *= -ctx.strength  # expect: grad-output-edited
        return grad_output, None


class ClipGradient(Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad.clamp_(-1, 1)  # expect: grad-output-edited


class Flattened(Function):
    @staticmethod
    def forward(ctx, x, keep):
        ctx.save_for_backward(keep)
        return x * keep

    @staticmethod
    def backward(ctx, grad):
        (keep,) = ctx.saved_tensors
        rows = grad.contiguous().view(-1)
        rows.mul_(keep.view(-1))  # expect: grad-output-edited
        return rows.view_as(grad), None


class CloneFirst(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        grad_input = grad_output.clone()
        grad_input[x < 0] = 0
        grad_input *= 1.0
        return grad_input


class CopiesOnlySometimes(Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return x.masked_fill(mask, 0)

    @staticmethod
    def backward(ctx, grad_output):
        (mask,) = ctx.saved_tensors
        if ctx.needs_input_grad[0]:
            grad_output = grad_output.clone()
        grad_output = grad_output * 2
        grad_output[mask] = 0
        part = grad_output[mask]
        part.zero_()
        return grad_output, None


class EditsItsOwn(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return F.embedding(x, weight)

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_weight = torch.zeros_like(weight)
        grad_weight.index_add_(0, x.view(-1), grad_output.reshape(-1, weight.shape[1]))
        total = 0
        total += grad_output.numel()
        return None, grad_weight / total


class CubeWithoutGraph(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.pow(3)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        with torch.no_grad():  # expect: not-once-differentiable
            return 3 * x * x * grad_output


class CubeOfData(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.pow(3)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 3 * x.data**2 * grad_output  # expect: not-once-differentiable


class ThroughNumpy(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(x.detach().cpu().numpy() ** 2)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        squared = 2 * x.cpu().numpy()  # expect: not-once-differentiable
        return grad_output * torch.from_numpy(squared)


class UnderTheDecorator(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    @torch.no_grad()  # expect: not-once-differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return x.cos() * grad_output


class SaysSo(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.from_numpy(x.detach().cpu().numpy() ** 2)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return grad_output * torch.from_numpy(2 * x.cpu().numpy())


class Differentiable(Function):
    @staticmethod
    def forward(ctx, x, table):
        ctx.table = table
        ctx.save_for_backward(x)
        return x.pow(3)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        ctx.table.data.zero_()
        return 3 * x * x * grad_output, None


class Projection(Function):
    @staticmethod
    def forward(ctx, x, weight):  # expect: autocast-not-handled
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.t() @ x


class HandledProjection(Function):
    @staticmethod
    @custom_fwd(device_type="cuda", cast_inputs=torch.float16)
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    @custom_bwd(device_type="cuda")
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        return grad_output @ weight, grad_output.t() @ x


class CastsByHand(Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return torch.mm(x, weight.t())

    @staticmethod
    def backward(ctx, grad_output):
        x, weight = ctx.saved_tensors
        grad_output = grad_output.to(weight.dtype)
        return grad_output.mm(weight), grad_output.t().mm(x)


class NoProducts(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad_output * s * (1 + x * (1 - s))


def train(model, head, loader, optimizer, scaler):
    model.train()
    for inputs, targets in loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.float16):
            hidden = NoProducts.apply(model(inputs))
            logits = Projection.apply(HandledProjection.apply(hidden, head[0]), head[1])
            loss = F.cross_entropy(CastsByHand.apply(logits, head[2]), targets)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
