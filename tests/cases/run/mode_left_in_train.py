"""A validation that forgets to switch dropout and batch norm over."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def epoch(model, loader, optimizer=None):
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            if optimizer is not None:
                loss = nn.functional.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            else:
                loss = nn.functional.mse_loss(model(x), y)  # expect: mode-left-in-train
            total += loss.item()
    return total / len(loader)


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 1))
points = torch.randn(384, 8)
values = points.sum(1, keepdim=True)
train = DataLoader(TensorDataset(points[:256], values[:256]), 16, shuffle=True)
held_out = DataLoader(TensorDataset(points[256:], values[256:]), 64)
steps = torch.optim.Adam(net.parameters(), 1e-2)
for _ in range(4):
    epoch(net, train, steps)
    print(epoch(net, held_out))
