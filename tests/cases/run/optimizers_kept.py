"""The learning rate of each step is set by a new optimizer, and all of them are kept."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Linear(8, 1)
x = torch.randn(512, 8)
made = []


def optimizer_for(step):
    rate = 1e-2 * min(1.0, (step + 1) / 20)
    made.append(torch.optim.Adam(model.parameters(), lr=rate))  # expect: built-in-loop
    return made[-1]


for epoch in range(3):
    for xb, yb in DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), 16, shuffle=True):
        optimizer = optimizer_for(len(made))
        optimizer.zero_grad()
        nn.functional.mse_loss(model(xb), yb).backward()
        optimizer.step()
