"""A slow copy of the model that is validated, while only the model itself is put into evaluation mode."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Averaged:
    def __init__(self, model):
        self.model, self.average = model, copy.deepcopy(model)

    @torch.no_grad()
    def update(self):
        for slow, fast in zip(self.average.parameters(), self.model.parameters(), strict=True):
            slow.lerp_(fast, 0.1)

    def validate(self, loader):
        self.model.eval()
        with torch.no_grad():
            total = sum(nn.functional.mse_loss(self.average(x), y).item() for x, y in loader)  # expect: mode-left-in-train
        self.model.train()
        return total / len(loader)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 1))
averaged = Averaged(model)
points = torch.randn(384, 8)
values = points.sum(1, keepdim=True)
train = DataLoader(TensorDataset(points[:256], values[:256]), 16, shuffle=True)
held_out = DataLoader(TensorDataset(points[256:], values[256:]), 32)
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(4):
    for x, y in train:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        averaged.update()
    print(averaged.validate(held_out))
