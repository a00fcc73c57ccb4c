"""Losses that subclasses write: they may be divided there."""

import torch
from torch import nn
import torch.nn.functional as F


class Trainer:
    def __init__(self, net, loader, every=4):
        self.net, self.loader, self.every = net, loader, every
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def compute_loss(self, x, y):
        raise NotImplementedError

    def fit(self):
        for i, (x, y) in enumerate(self.loader):
            loss = self.compute_loss(x, y)
            loss.backward()
            if (i + 1) % self.every == 0:
                self.opt.step()
                self.opt.zero_grad()


class Regression(Trainer):
    def compute_loss(self, x, y):
        batch = x.shape[0] * 4
        return F.mse_loss(self.net(x), y, reduction="sum") / batch


class Count(Trainer):
    def compute_loss(self, x, y):
        return F.poisson_nll_loss(self.net(x), y, reduction="none").sum().mul(1 / 128)
