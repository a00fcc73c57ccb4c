"""Autograd functions in lists, defaults and attributes, and losses of which one entry has no gradient, done right."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from layers import Cosine
from ops import ball_query
from torch.autograd import gradcheck
from torch.autograd.function import once_differentiable
from torchvision.models import resnet18


class Ternary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w):
        t = 0.7 * w.abs().mean()
        return w.sign() * (w.abs() > t)

    @staticmethod
    def backward(ctx, g):
        return g


class TLinear(torch.nn.Linear):
    quantizers = [Ternary.apply]

    def forward(self, x):
        w = self.weight
        for q in self.quantizers:
            w = q(w)
        return torch.nn.functional.linear(x, w, self.bias)


class ReverseGrad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -g


class Domain(torch.nn.Module):
    def __init__(self, feat, reverse=ReverseGrad.apply):
        super().__init__()
        self.reverse = reverse
        self.head = torch.nn.Linear(feat, 2)

    def forward(self, f):
        return self.head(self.reverse(f))


class Soft(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, lam):
        ctx.save_for_backward(x)
        ctx.lam = lam
        return x.sign() * (x.abs() - lam).clamp(min=0)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() > ctx.lam), None


def ista(A, y, steps, lam):
    prox = Soft.apply
    x = torch.zeros(A.shape[1])
    for _ in range(steps):
        x = prox(x - A.t() @ (A @ x - y), lam)
    return x


class EncodeSpike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, v, th):
        ctx.save_for_backward(v)
        ctx.th = th
        return (v >= th).float()

    @staticmethod
    def backward(ctx, g):
        (v,) = ctx.saved_tensors
        return g / (1 + (v - ctx.th).abs()) ** 2, None


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(700, 20)
        self.spike = EncodeSpike.apply

    def step(self, x, v):
        v = 0.9 * v + self.fc(x)
        s = self.spike(v, 1.0)
        return s, v - s


class Trainer:
    def __init__(self, cfg):
        self.model = nn.Sequential(nn.Linear(cfg.n, 64), nn.ReLU(), nn.Linear(64, cfg.k))
        self.opt = torch.optim.Adam(self.model.parameters())
        self.mae = nn.L1Loss()

    def compute_loss(self, batch):
        pred = self.model(batch["x"])
        age = (pred.softmax(1) * torch.arange(pred.size(1))).sum(1)
        return self.mae(age, batch["age"])

    def fit(self, loader):
        for batch in loader:
            self.opt.zero_grad()
            loss = self.compute_loss(batch)
            loss.backward()
            self.opt.step()


net = resnet18(num_classes=10)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def step(x, y):
    logits = net(x)
    losses = {"ce": F.cross_entropy(logits, y)}
    losses["err"] = (1 - logits.softmax(1).gather(1, y[:, None])).mean()
    total = losses["ce"] + 0.5 * losses["err"]
    opt.zero_grad()
    total.backward()
    opt.step()
    return {k: v.item() for k, v in losses.items()}


def soft_f1(y_hat, y):
    y_hat = y_hat.sigmoid()
    tp = (y_hat * y).sum(0)
    fp = (y_hat * (1 - y)).sum(0)
    fn = ((1 - y_hat) * y).sum(0)
    return (1 - 2 * tp / (2 * tp + fp + fn + 1e-8)).mean()


def train(model, loader, optimizer, scaler, device):
    model.train()
    for x, y in loader:
        with torch.autocast(device):
            out = model(x.to(device))
        loss = soft_f1(out.float(), y.to(device))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def make(n, *, dtype=torch.float64, seed=0):
    g = torch.Generator().manual_seed(seed)
    return torch.rand(n, 3, generator=g, dtype=dtype, requires_grad=True)


def test_ball():
    pts, ctr = make(32), make(4, seed=1)
    assert gradcheck(lambda p, c: ball_query(p, c, 0.3), (pts, ctr))


class Suite:
    def data(self):
        x = torch.nn.Parameter(torch.randn(3, 7).double())
        return {"x": x, "eps": 1e-8}

    def test(self):
        d = self.data()
        assert torch.autograd.gradcheck(Cosine.apply, (d["x"], d["eps"]))


class Kernel(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        with torch.set_grad_enabled(False):
            return g * x.exp()


class Stack(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        return a + 1, b + 1

    @staticmethod
    def backward(ctx, *grad_outputs):
        for g in grad_outputs:
            if g is not None:
                pass
        return tuple(g.clamp(-1, 1) for g in grad_outputs)


class CausalMask(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores):
        t = scores.size(-1)
        mask = torch.ones(t, t, dtype=torch.bool, device=scores.device).triu(1)
        for head in range(scores.size(1)):
            pass
        ctx.save_for_backward(mask)
        return scores.masked_fill(mask, float("-inf"))

    @staticmethod
    def backward(ctx, g):
        (mask,) = ctx.saved_tensors
        return g.masked_fill(mask, 0)
