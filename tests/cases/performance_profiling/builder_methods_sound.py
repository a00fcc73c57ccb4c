"""Parts that a method builds, healthy."""

import torch
from torch import nn


class Runner:
    def __init__(self, net, data, lr):
        self.net, self.data, self.lr = net.cuda(), data, lr
        self.opt = self.make_opt()

    def make_opt(self):
        return torch.optim.AdamW(
            [{"params": self.net.head.parameters(), "lr": self.lr * 10}, {"params": self.net.body.parameters()}],
            lr=self.lr,
        )

    def run(self):
        for x, y in self.data:
            opt = self.opt
            loss = nn.functional.mse_loss(self.net(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
