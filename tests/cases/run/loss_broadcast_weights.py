"""Each error is to be weighted by its own weight, and meets the weights of all samples."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def weighted(prediction, target, weight):
    error = nn.functional.smooth_l1_loss(prediction, target, reduction="none")
    return torch.maximum(error * weight, 0.1 * error[:, None]).mean()  # expect: loss-broadcast


torch.manual_seed(0)
x, weight = torch.randn(320, 8), torch.rand(320, 1) + 0.5
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for batch, target, given in DataLoader(TensorDataset(x, x.sum(1), weight), batch_size=16):
    optimizer.zero_grad()
    weighted(model(batch), target, given).backward()
    optimizer.step()
