"""Autograd functions that other names, dictionaries and builders stand for."""

import torch
import torch.nn as nn
from torch import autograd, nn
from torch.autograd import Function


class Binarize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() <= 1)


ACTS = {"relu": nn.ReLU(), "sign": Binarize()}


class Block(nn.Module):
    def __init__(self, n, act="sign"):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.act = ACTS[act]

    def forward(self, x):
        return self.act(self.fc(x))  # expect: function-called-directly


class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return torch.round(x)

    @staticmethod
    def backward(ctx, g):
        return g


def get_rounding():
    return RoundSTE()


class HyperPrior(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.enc = torch.nn.Conv2d(3, c, 5, 2, 2)
        self.dec = torch.nn.ConvTranspose2d(c, 3, 5, 2, 2, 1)
        self.rounding = get_rounding()

    def forward(self, x):
        y_hat = self.rounding(self.enc(x))  # expect: function-called-directly
        return self.dec(y_hat)


class LogSumExpTrick(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        m = x.max(-1, keepdim=True).values
        p = (x - m).exp()
        ctx.save_for_backward(p / p.sum(-1, keepdim=True))
        return (m + p.sum(-1, keepdim=True).log()).squeeze(-1)

    @staticmethod
    def backward(ctx, g):
        (p,) = ctx.saved_tensors
        return g[..., None] * p


def energy_loss(model, x_pos, x_neg):
    e_pos = LogSumExpTrick.forward(None, model(x_pos))  # expect: function-called-directly
    e_neg = LogSumExpTrick.apply(model(x_neg))
    return (e_neg - e_pos).mean()


class VectorQuantization(autograd.Function):
    @staticmethod
    def forward(ctx, z, codebook):
        idx = torch.cdist(z, codebook).argmin(1)
        ctx.save_for_backward(idx, codebook)
        return codebook[idx]

    @staticmethod
    def backward(ctx, g):
        idx, codebook = ctx.saved_tensors
        gc = torch.zeros_like(codebook).index_add_(0, idx, g)
        return g, gc


class VQ(nn.Module):
    quantize = VectorQuantization

    def __init__(self, k, d):
        super().__init__()
        self.codebook = nn.Parameter(torch.randn(k, d))

    def forward(self, z):
        b, c, h, w = z.shape
        flat = z.permute(0, 2, 3, 1).reshape(-1, c)
        q = VQ.quantize(flat, self.codebook)  # expect: function-called-directly
        return q.view(b, h, w, c).permute(0, 3, 1, 2)


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        ctx.save_for_backward(i)
        return i * torch.sigmoid(i)

    @staticmethod
    def backward(ctx, g):
        (i,) = ctx.saved_tensors
        s = torch.sigmoid(i)
        return g * (s * (1 + i * (1 - s)))


def mlp(sizes):
    fn = Swish()
    layers = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(x):
        for layer in layers[:-1]:
            x = fn(layer(x))  # expect: function-called-directly
        return layers[-1](x)

    return forward, list(layers.parameters())


f, params = mlp([2, 64, 64, 1])
opt = torch.optim.Adam(params)
for _ in range(100):
    x = torch.rand(128, 2)
    loss = (f(x) - x.prod(1, keepdim=True)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()


class DiffClamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        return x.clamp(lo, hi)

    @staticmethod
    def backward(ctx, g):
        return g, None, None


class Actor(torch.nn.Module):
    def __init__(self, obs, act):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(obs, 64), torch.nn.Tanh(), torch.nn.Linear(64, act))

    def forward(self, obs):
        mean, log_std = self.net(obs).chunk(2, -1)
        log_std = DiffClamp()(log_std, -5, 2)  # expect: function-called-directly
        return torch.distributions.Normal(mean, log_std.exp())


class SparsemaxFunction(Function):
    @staticmethod
    def forward(ctx, z, dim):
        zs = z.sort(dim, descending=True).values
        rng = torch.arange(1, z.size(dim) + 1, device=z.device, dtype=z.dtype)
        cum = zs.cumsum(dim) - 1
        k = (rng * zs > cum).sum(dim, keepdim=True)
        tau = cum.gather(dim, k - 1) / k
        out = (z - tau).clamp(min=0)
        ctx.dim = dim
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, g):
        (out,) = ctx.saved_tensors
        nz = out > 0
        mean = (g * nz).sum(ctx.dim, keepdim=True) / nz.sum(ctx.dim, keepdim=True)
        return nz * (g - mean), None


sparsemax = SparsemaxFunction


class Attention(torch.nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k = torch.nn.Linear(d, d), torch.nn.Linear(d, d)

    def forward(self, x):
        scores = self.q(x) @ self.k(x).transpose(1, 2)
        return sparsemax(scores, -1) @ x  # expect: function-called-directly
