"""Optimizers that are stepped by turns, under another name."""

import torch.nn.functional as F
from torch import nn, optim


def train(left: nn.Module, right: nn.Module, loader):
    left_optimizer, right_optimizer = optim.SGD(left.parameters(), lr=0.1), optim.SGD(right.parameters(), lr=0.1)
    both = [left_optimizer, right_optimizer]
    for x, y in loader:
        left_optimizer.zero_grad()
        right_optimizer.zero_grad()
        F.mse_loss(left(x) + right(x), y).backward()
        for each in both:
            each.step()


class Stepped:
    def __init__(self, model: nn.Module):
        self.model = model
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)

    def apply(self):
        self.optimizer.step()

    def fit(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            F.mse_loss(self.model(x), y).backward()
            self.apply()
