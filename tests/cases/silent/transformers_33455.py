"""The trainer takes the batches of an epoch for its steps, and stops after a quarter of what the schedule was made for."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, loader, epochs, accumulation):
        self.model, self.loader, self.accumulation = model, loader, accumulation
        self.total = len(loader) * epochs
        self.epochs = epochs
        self.optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, self.total)  # expect: schedule-unfinished

    def train(self):
        for _ in range(self.epochs):
            for number, (x, y) in enumerate(self.loader, start=1):
                loss = nn.functional.cross_entropy(self.model(x), y) / self.accumulation
                loss.backward()
                if number % self.accumulation == 0:
                    self.optimizer.step()
                    self.schedule.step()
                    self.optimizer.zero_grad()


torch.manual_seed(0)
x = torch.randn(1024, 8)
loader = DataLoader(TensorDataset(x, (x.sum(1) > 0).long()), batch_size=16)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))
Trainer(model, loader, epochs=4, accumulation=4).train()
assert math.isfinite(float(model[0].weight.sum()))
