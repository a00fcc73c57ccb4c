"""A schedule is stepped four times in each step, and is at 0 for most of the training."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=60)  # expect: schedule-exceeded
for _ in range(60):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
    optimizer.step()
    for _ in range(4):
        schedule.step()
