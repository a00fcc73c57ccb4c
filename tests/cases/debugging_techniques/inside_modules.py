"""Edits in place in modules within modules, in methods that forward calls, and at the end of a Sequential."""

import torch
import torch.nn.functional as F
from torch import nn


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.squash = nn.Sigmoid()

    def forward(self, x):
        gate = self.squash(self.inner(x))
        gate *= 0.5  # expect: inplace-breaks-autograd
        return x * gate


class Pool(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.anchors = nn.Parameter(torch.randn(4, width))
        self.fixed = nn.Parameter(torch.randn(4, width), requires_grad=False)
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x):
        weight = torch.exp(-(x.unsqueeze(1) - self.anchors).square().sum(-1))
        weight /= weight.sum(dim=1, keepdim=True)  # expect: inplace-breaks-autograd
        mixed = self.mix(weight, x)
        plain = torch.exp(torch.ones(self.anchors.shape[0]))
        plain /= plain.sum()
        still = torch.exp(self.fixed.sum(-1))
        still += self.seen
        return mixed * plain.mean() * still.mean()

    def mix(self, weight, x):
        size = torch.sqrt(weight)
        size.add_(1.0)  # expect: inplace-breaks-autograd
        scale = torch.ones_like(x).exp()
        scale += 1.0
        return size.sum() * x * scale


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x, mask):
        scores = self.q(x) @ self.k(x).transpose(-2, -1) / x.size(-1) ** 0.5
        scores.masked_fill_(mask, -1e9)
        attention = F.softmax(scores, dim=-1)
        return attention.masked_fill(mask, 0.0) @ self.v(x)


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.pool = Pool(width)
        self.attention = Attention(width)
        self.blocks = nn.ModuleList([Gate(width) for _ in range(depth)])
        self.out = nn.Sequential(nn.Linear(width, 1), nn.Tanh())

    def forward(self, x, mask):
        x = self.attention(self.pool(x), mask)
        for block in self.blocks:
            x = block(x)
        score = self.out(x)
        score += 1.0  # expect: inplace-breaks-autograd
        return score


def train(loader):
    net = Net(8, 3)
    optimizer = torch.optim.Adam(net.parameters())
    for x, mask, y in loader:
        loss = F.mse_loss(net(x, mask), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
