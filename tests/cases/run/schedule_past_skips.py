"""The first scale is far too high: the warm-up is over before the first weight has moved."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-1)
scheduler = torch.optim.lr_scheduler.SequentialLR(
    optimizer,
    [
        torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=10),
        torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50),
    ],
    milestones=[10],
)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**30)
for _ in range(60):
    optimizer.zero_grad()
    x = torch.randn(16, 8)
    with torch.autocast("cpu", dtype=torch.float16):
        loss = nn.functional.mse_loss(model(x), x[:, :1].half())
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()  # expect: scheduler-on-skipped-step
