"""A base class that this file does not show may step."""

import torch.nn.functional as F
from torch import nn, optim

from mylib import BaseTrainer


class Trainer(BaseTrainer):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)

    def fit(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            F.mse_loss(self.model(x), y).backward()
            self.after_batch()


class Other(BaseTrainer):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model
        self.optimizer = optim.SGD(model.parameters(), lr=0.1)

    def losses(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            F.mse_loss(self.model(x), y).backward()
            yield x
