"""A schedule moves at the start of each epoch, in a function whose parts are gone when the job ends."""

import torch
from torch import nn


def train() -> None:
    model = nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for _ in range(5):
        schedule.step()  # expect: scheduler-before-optimizer
        for _ in range(4):
            x = torch.randn(16, 8)
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
            optimizer.step()


torch.manual_seed(0)
train()
