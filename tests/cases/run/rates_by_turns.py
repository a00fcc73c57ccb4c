"""Rates that are 0 for a while, and meant so: of optimizers by turns, and of a body that is held still at the end."""

import torch
from torch import nn

torch.manual_seed(0)
body, head, judge = nn.Sequential(nn.Linear(8, 16), nn.Tanh()), nn.Linear(16, 1), nn.Linear(8, 1)
optimizers = [torch.optim.SGD(each.parameters(), lr=0.02) for each in (body, head, judge)]
for number in range(240):
    x = torch.randn(32, 8)
    optimizers[0].param_groups[0]["lr"] = 0.0 if number > 160 else 0.02
    optimizers[2].param_groups[0]["lr"] = 0.02 if number % 4 == 0 else 0.0
    for optimizer in optimizers:
        optimizer.zero_grad()
    target = x.sum(1, keepdim=True)
    (nn.functional.mse_loss(head(body(x)), target) + nn.functional.mse_loss(judge(x), target)).backward()
    for optimizer in optimizers:
        optimizer.step()
