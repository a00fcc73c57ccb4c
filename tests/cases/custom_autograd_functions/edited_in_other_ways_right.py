"""Inputs and gradients that helpers, loops and collectives change in place, done right."""

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class InplaceLeaky(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.slope = slope
        neg = x < 0
        x = torch.where(neg, x * slope, x)
        ctx.save_for_backward(neg)
        return x

    @staticmethod
    def backward(ctx, g):
        (neg,) = ctx.saved_tensors
        return torch.where(neg, g * ctx.slope, g), None


class InPlaceABN(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        mean = x.mean((0, 2, 3), keepdim=True)
        std = (x.var((0, 2, 3), keepdim=True) + eps).sqrt()
        x = (x - mean) / std
        ctx.save_for_backward(x, weight, std)
        return x * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)

    @staticmethod
    def backward(ctx, g):
        xhat, weight, std = ctx.saved_tensors
        gw = (g * xhat).sum((0, 2, 3))
        gb = g.sum((0, 2, 3))
        gx = g * weight.view(1, -1, 1, 1) / std
        return gx, gw, gb, None


class AddNoise(torch.autograd.Function):
    @staticmethod
    def forward(ctx, latents, sigma):
        noise = torch.randn_like(latents)
        return latents + sigma * noise

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class ReLUInplace(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h):
        out = torch.nn.functional.relu(h)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        return g * (out > 0).to(g.dtype)


class ScaleRows(torch.autograd.Function):
    @staticmethod
    def forward(x, s):
        flat = x.view(x.size(0), -1).clone()
        flat.mul_(s[:, None])
        return flat.view_as(x).clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, s = inputs
        ctx.save_for_backward(output, s)

    @staticmethod
    def backward(ctx, g):
        out, s = ctx.saved_tensors
        gs = (g * out).flatten(1).sum(1) / s
        return g * s.view(-1, *[1] * (g.dim() - 1)), gs


def rotate_(t, cos, sin):
    a, b = t.chunk(2, -1)
    t.copy_(torch.cat([a * cos - b * sin, b * cos + a * sin], -1))
    return t


class RoPE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, cos, sin):
        ctx.save_for_backward(cos, sin)
        return rotate_(q.clone(), cos, sin)

    @staticmethod
    def backward(ctx, g):
        cos, sin = ctx.saved_tensors
        return rotate_(g.clone(), cos, -sin), None, None


class ClipGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bound):
        ctx.bound = bound
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        grad_output = grad_output.clamp(-ctx.bound, ctx.bound)
        return grad_output, None


class MaskedFeature(torch.autograd.Function):
    @staticmethod
    def forward(ctx, feats, mask):
        ctx.save_for_backward(mask)
        out = feats.clone()
        out[~mask] = 0
        return out

    @staticmethod
    def backward(ctx, *grads):
        (mask,) = ctx.saved_tensors
        g = grads[0].clone()
        g[~mask] = 0
        return g, None


class CopyToModelParallel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x

    @staticmethod
    def backward(ctx, dy):
        dy = dy.clone()
        dist.all_reduce(dy, op=dist.ReduceOp.SUM, group=ctx.group)
        return dy, None


class ColumnParallel(torch.nn.Module):
    def __init__(self, i, o, group):
        super().__init__()
        self.group = group
        self.lin = torch.nn.Linear(i, o // dist.get_world_size(group))

    def forward(self, x):
        return self.lin(CopyToModelParallel.apply(x, self.group))


class MaxOutFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        out = torch.relu(x)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        (out,) = ctx.saved_tensors
        grad_in = grad_out.reshape(grad_out.size(0), -1).clone()
        torch.mul(grad_in, (out > 0).view_as(grad_in), out=grad_in)
        return grad_in.view_as(out)


def _zero_small(t, eps):
    t.masked_fill_(t.abs() < eps, 0.0)
    return t


class SparsifyGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, eps):
        ctx.eps = eps
        return h.clone()

    @staticmethod
    def backward(ctx, grad):
        return _zero_small(grad.clone(), ctx.eps), None


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.GRU(40, 128)

    def forward(self, x):
        h, _ = self.rnn(x)
        return SparsifyGrad.apply(h, 1e-4)


class SplitHeads(torch.autograd.Function):
    @staticmethod
    def forward(ctx, qkv):
        ctx.set_materialize_grads(False)
        return qkv.chunk(3, -1)

    @staticmethod
    def backward(ctx, dq, dk, dv):
        if dq is not None:
            dq = dq * 0.125
        return torch.cat([dq, dk, dv], -1)


class NormalizeGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, depth):
        return depth * 1.0

    @staticmethod
    def backward(ctx, grad_depth):
        grad = grad_depth.contiguous().clone()
        for i in range(grad.shape[0]):
            grad[i].div_(grad[i].norm() + 1e-8)
        return grad


class GradientReversal(Function):
    @staticmethod
    def forward(ctx, feats, lambd=1.0):
        ctx.lambd = lambd
        return feats.clone()

    @staticmethod
    def backward(ctx, grads):
        lam = grads.new_tensor(ctx.lambd)
        dx = -lam * grads
        return dx, None


class GRL(nn.Module):
    def __init__(self, lambd):
        super().__init__()
        self.lambd = lambd

    def forward(self, x):
        return GradientReversal.apply(x, self.lambd)


class DANN(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(32, 16)
        self.cls = nn.Linear(16, 4)
        self.dom = nn.Sequential(GRL(0.3), nn.Linear(16, 2))

    def forward(self, x):
        f = torch.relu(self.enc(x))
        return self.cls(f), self.dom(f)


class FusedSwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w_gate, w_up, block_size):
        gate = x @ w_gate
        up = x @ w_up
        ctx.save_for_backward(x, w_gate, w_up, gate, up)
        ctx.block_size = block_size
        return torch.nn.functional.silu(gate) * up

    @staticmethod
    def backward(ctx, dy):
        x, w_gate, w_up, gate, up = ctx.saved_tensors
        sig = torch.sigmoid(gate)
        d_up = dy * gate * sig
        d_gate = dy * up * sig * (1 + gate * (1 - sig))
        dx = d_gate @ w_gate.T + d_up @ w_up.T
        dwg = x.T @ d_gate
        dwu = x.T @ d_up
        return dx, dwg, dwu, None


class MLP(torch.nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.wg = torch.nn.Parameter(torch.randn(dim, hidden) * 0.02)
        self.wu = torch.nn.Parameter(torch.randn(dim, hidden) * 0.02)

    def forward(self, x):
        return FusedSwiGLU.apply(x, self.wg, self.wu, 128)


class ScatterMean(torch.autograd.Function):
    """Mean of node features over graphs, for molecules."""

    @staticmethod
    def forward(src, index, n_graphs):
        out = src.new_zeros(n_graphs, src.size(1))
        out.index_add_(0, index, src)
        cnt = torch.bincount(index, minlength=n_graphs).clamp(min=1)
        return out / cnt.unsqueeze(1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        src, index, n_graphs = inputs
        cnt = torch.bincount(index, minlength=n_graphs).clamp(min=1)
        ctx.save_for_backward(index, cnt)

    @staticmethod
    def backward(ctx, grad):
        index, cnt = ctx.saved_tensors
        if not ctx.needs_input_grad[0]:
            return None, None, None
        return (grad / cnt.unsqueeze(1))[index], None, None


def readout(h, batch):
    return ScatterMean.apply(h, batch.batch, batch.num_graphs)


class AllGather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor, group):
        ctx.group = group
        ctx.rank = dist.get_rank(group)
        ctx.n = tensor.shape[0]
        parts = [torch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, tensor.contiguous(), group=group)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad_output):
        dist.all_reduce(grad := grad_output.contiguous().clone(), group=ctx.group)
        start = ctx.rank * ctx.n
        return grad[start : start + ctx.n], None


gather = AllGather.apply


def clip_loss(img, txt, scale, group=None):
    img, txt = gather(img, group), gather(txt, group)
    logits = scale * img @ txt.t()
    labels = torch.arange(len(logits), device=logits.device)
    return torch.nn.functional.cross_entropy(logits, labels)


class _Warp1d(torch.autograd.Function):
    @staticmethod
    def forward(ctx, signal, shift, mode="linear", pad=0.0):
        lo = torch.floor(shift)
        frac = shift - lo
        a = torch.roll(signal, 1, -1)
        ctx.save_for_backward(signal, a, frac)
        return (1 - frac) * signal + frac * a

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        signal, a, frac = ctx.saved_tensors
        grad_signal = grad_shift = None
        if ctx.needs_input_grad[0]:
            grad_signal = g * (1 - frac) + torch.roll(g * frac, -1, -1)
        if ctx.needs_input_grad[1]:
            grad_shift = (g * (a - signal)).sum(-1, keepdim=True)
        return grad_signal, grad_shift, None, None


def warp(signal, shift, mode="linear", pad=0.0):
    return _Warp1d.apply(signal, shift, mode, pad)


class LinearFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input, weight, bias):
        ctx.save_for_backward(input, weight, bias)
        return torch.addmm(bias, input, weight.t())

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grads = []
        grads.append(grad_output.mm(weight))
        grads.append(grad_output.t().mm(input))
        grads.append(grad_output.sum(0))
        return tuple(grads)


def run(x, w, b):
    return LinearFn.apply(x, w, b)
