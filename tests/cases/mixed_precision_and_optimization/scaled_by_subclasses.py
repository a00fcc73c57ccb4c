"""A trainer whose methods another one overrides: each scales, or not, in a way of its own."""

import torch
from torch import nn
import torch.nn.functional as F


class Trainer:
    def __init__(self, net, loader, lr=0.1):
        self.net, self.loader = net, loader
        self.opt = torch.optim.SGD(net.parameters(), lr=lr)
        self.scaler = torch.amp.GradScaler("cuda")

    def backward(self, loss):
        loss.backward()

    def update(self):
        self.opt.step()

    def forward_loss(self, x, y):
        return F.cross_entropy(self.net(x), y)

    def fit(self):
        for x, y in self.loader:
            self.opt.zero_grad()
            self.backward(self.forward_loss(x, y))
            self.update()


class AmpTrainer(Trainer):
    def backward(self, loss):
        self.scaler.scale(loss).backward()

    def update(self):
        self.scaler.step(self.opt)
        self.scaler.update()

    def forward_loss(self, x, y):
        with torch.autocast("cuda", dtype=torch.float16):
            return super().forward_loss(x, y)


class ClipTrainer(AmpTrainer):
    def update(self):
        self.scaler.unscale_(self.opt)
        nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        super().update()


def main(amp, net, loader):
    (ClipTrainer if amp else Trainer)(net, loader).fit()
