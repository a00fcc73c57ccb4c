"""A helper reads values: the lines that call it are what may be changed."""

import torch
from torch import nn


def as_number(x):
    if isinstance(x, torch.Tensor):
        return x.item()
    return x


class Learner:
    def __init__(self, net: nn.Module):
        self.net = net.cuda()
        self.optimizer = torch.optim.Adam(net.parameters())

    def update(self, batch):
        actor = self.net(batch).mean()
        critic = self.net(batch).square().mean()
        self.optimizer.zero_grad()
        (actor + critic).backward()
        self.optimizer.step()
        return as_number(actor), as_number(critic)  # expect: sync-bound


def train(net, loader):
    learner = Learner(net)
    for batch in loader:
        learner.update(batch.cuda())
