"""The schedule moves on at the start of every epoch."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(64, 8)
y = x.sum(1, keepdim=True)
model = nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[2, 4], gamma=0.3)
for _epoch in range(6):
    scheduler.step()  # expect: scheduler-before-optimizer
    for part in range(0, 64, 16):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x[part : part + 16]), y[part : part + 16]).backward()
        optimizer.step()
