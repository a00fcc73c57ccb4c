"""A learning rate that is to fall over 30 epochs and falls with each batch: the line that steps it is to blame."""

import torch
from torch import nn

EPOCHS, BATCHES = 30, 5

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: max(0.0, 1 - epoch / EPOCHS))
for _ in range(EPOCHS):
    for _ in range(BATCHES):
        x = torch.randn(32, 8)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
        optimizer.step()
        schedule.step()  # expect: schedule-exceeded
