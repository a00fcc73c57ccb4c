"""Two optimizers over the same parameters: one for the first half, the other for the second. And loaders built early."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
x = torch.randn(512, 8)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 16, shuffle=True)
stages = [torch.optim.Adam(model.parameters(), 1e-2), torch.optim.SGD(model.parameters(), 1e-2, momentum=0.9)]
for optimizer in stages:
    for epoch in range(2):
        for xb, yb in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(xb), yb).backward()
            optimizer.step()
