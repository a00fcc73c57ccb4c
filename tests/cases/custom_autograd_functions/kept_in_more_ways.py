"""What is kept by dictionaries, starred tuples and arrays, and counted through helpers."""

import numpy as np
import torch
from torch import nn
from torch.autograd import Function


def _grads(g, a, b):
    return g * b, g * a


class Mul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b, alpha=1):
        ctx.save_for_backward(a, b)
        ctx.alpha = alpha
        return alpha * a * b

    @staticmethod
    def backward(ctx, g):
        return _grads(g * ctx.alpha, *ctx.saved_tensors)  # expect: gradient-count


def hadamard(x, y):
    return Mul.apply(x, y, 2)


class _Base(Function):
    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * mask  # expect: gradient-count


class DropPath(_Base):
    @staticmethod
    def forward(ctx, x, p):
        mask = (torch.rand(x.shape[0], *[1] * (x.dim() - 1), device=x.device) > p).to(x.dtype) / (1 - p)
        ctx.save_for_backward(mask)
        return x * mask


class Interp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, feats, idx, weight):
        ctx.save_for_backward(idx, weight)
        ctx.m = feats.size(1)
        return (feats[:, idx] * weight[..., None]).sum(-2)

    @staticmethod
    def backward(ctx, grad_out):
        idx, weight = ctx.saved_tensors
        out = grad_out.new_zeros(grad_out.size(0), ctx.m, grad_out.size(-1))
        out.index_add_(1, idx.flatten(), (grad_out.unsqueeze(-2) * weight[..., None]).flatten(1, 2))
        return out  # expect: gradient-count


class Affine(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, bias):
        ctx.x, ctx.scale = x, scale  # expect: tensor-on-ctx, tensor-on-ctx
        return x * scale + bias

    @staticmethod
    def backward(ctx, dy):
        x, scale = ctx.x, ctx.scale
        return dy * scale, (dy * x).sum(0), dy.sum(0)


class SoftmaxFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, mask):
        scores = scores.masked_fill(~mask, float("-inf"))
        ctx.probs = torch.softmax(scores, dim=-1)  # expect: tensor-on-ctx
        return ctx.probs

    @staticmethod
    def backward(ctx, g):
        p = ctx.probs
        return p * (g - (g * p).sum(-1, keepdim=True)), None


class Geo(torch.autograd.Function):
    @staticmethod
    def forward(ctx, points, normals):
        state = dict(points=points, normals=normals)
        ctx.state = state  # expect: tensor-on-ctx
        return (points * normals).sum(-1)

    @staticmethod
    def backward(ctx, g):
        s = ctx.state
        return g[..., None] * s["normals"], g[..., None] * s["points"]


class RMS(torch.autograd.Function):
    @staticmethod
    def forward(x, w):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w = inputs
        ctx.x = x  # expect: tensor-on-ctx
        ctx.w = w  # expect: tensor-on-ctx

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.x, ctx.w
        r = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        gw = g * w
        return r * gw - x * r**3 * (gw * x).mean(-1, keepdim=True), (g * x * r).sum(0)


class Radon(torch.autograd.Function):
    @staticmethod
    def forward(ctx, img, angles):
        theta = np.deg2rad(angles)
        ctx.save_for_backward(img, theta)  # expect: saved-non-tensor
        return torch.stack([img.sum(-1) * float(np.cos(t)) for t in theta])

    @staticmethod
    def backward(ctx, g):
        return g.sum(0)[..., None].expand(g.shape[1], g.shape[1]), None


class Cat(torch.autograd.Function):
    @staticmethod
    def forward(ctx, dim, *xs):
        sizes = [x.size(dim) for x in xs]
        ctx.save_for_backward(sizes)  # expect: saved-non-tensor
        ctx.dim = dim
        return torch.cat(xs, dim)

    @staticmethod
    def backward(ctx, g):
        (sizes,) = ctx.saved_tensors
        return None, *g.split(sizes, ctx.dim)


class SwishBeta(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, beta):
        s = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, s, beta)  # expect: saved-non-tensor
        return x * s

    @staticmethod
    def backward(ctx, g):
        x, s, beta = ctx.saved_tensors
        return g * (s + beta * x * s * (1 - s)), None


class SwishBlock(nn.Module):
    def __init__(self, d, beta=1.5):
        super().__init__()
        self.lin = nn.Linear(d, d)
        self.beta = beta

    def forward(self, x):
        return SwishBeta.apply(self.lin(x), self.beta)


class Pad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, left, right):
        n = x.shape[-1]
        ctx.save_for_backward(x, *(left, n))  # expect: saved-non-tensor
        return torch.nn.functional.pad(x, (left, right))

    @staticmethod
    def backward(ctx, g):
        x, left, n = ctx.saved_tensors
        return g[..., left : left + n], None, None
