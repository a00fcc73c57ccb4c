"""Folds that each have a schedule, of kinds that know their end and such that do not, all brought to their end."""

import torch
from torch import nn

torch.manual_seed(0)
for fold in range(4):
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    lr_scheduler = torch.optim.lr_scheduler
    schedule = lr_scheduler.StepLR(optimizer, 10) if fold % 2 else lr_scheduler.CosineAnnealingLR(optimizer, 20)
    for _ in range(20):
        x = torch.randn(32, 8)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
        optimizer.step()
        schedule.step()
