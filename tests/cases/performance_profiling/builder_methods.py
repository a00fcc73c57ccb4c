"""Parts that a method builds."""

import torch
from torch import nn


class Runner:
    def __init__(self, net, data, lr):
        self.net, self.data, self.lr = net.cuda(), data, lr

    def make_opt(self):
        return torch.optim.AdamW(  # expect: built-in-loop
            [{"params": self.net.head.parameters(), "lr": self.lr * 10}, {"params": self.net.body.parameters()}],
            lr=self.lr,
        )

    def run(self):
        for x, y in self.data:
            opt = self.make_opt()
            loss = nn.functional.mse_loss(self.net(x.cuda()), y.cuda())
            opt.zero_grad()
            loss.backward()
            opt.step()
