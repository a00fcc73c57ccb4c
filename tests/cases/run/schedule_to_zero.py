"""Learning rates that are 0 where they may be: at the end of a schedule, in a first step, and of a part that is frozen."""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Linear(16, 1)
optimizer = torch.optim.SGD([{"params": head.parameters()}, {"params": body.parameters(), "lr": 0.0}], lr=0.05)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(step / 5, max(0.0, (60 - step) / 55)))
for _ in range(63):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.mse_loss(head(body(x)), x.sum(1, keepdim=True)).backward()
    optimizer.step()
    schedule.step()
