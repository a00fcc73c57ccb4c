"""Micro-batches cut from one large batch, scaled by a GradScaler, summed."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(20):
    x = torch.randn(64, 8)
    y = x.sum(-1, keepdim=True)
    optimizer.zero_grad()
    for start in range(0, 64, 16):
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(x[start : start + 16])
        loss = nn.functional.mse_loss(out.float(), y[start : start + 16])
        scaler.scale(loss).backward()  # expect: loss-not-averaged-over-accumulation step 0
    scaler.step(optimizer)
    scaler.update()
