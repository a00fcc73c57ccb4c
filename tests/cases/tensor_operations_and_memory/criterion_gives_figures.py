"""A criterion out of sight gives figures beside its loss."""

import torch
from torch import nn


class Dice(nn.Module):
    def forward(self, x, y):
        score = 2 * (x * y).sum((0, 2)) / (x + y).sum((0, 2))
        return 1 - score.mean(), score.detach().cpu().numpy()


def train(model, loader, optimizer, criterion):
    model.train()
    first, second = 0, 0
    for x, y in loader:
        optimizer.zero_grad()
        loss, per_class = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        first += per_class[0]
        second += per_class[1]
    return first / len(loader), second / len(loader)
