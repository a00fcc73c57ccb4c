"""A rate of 1 for Adam: a regression ends dearer than the mean of its targets."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1.0)
criterion = nn.MSELoss()
for _ in range(150):
    x = torch.randn(32, 8)
    loss = criterion(model(x), torch.sin(2 * x[:, :1]) + 0.3 * torch.randn(32, 1))  # expect: learning-rate-too-high
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
