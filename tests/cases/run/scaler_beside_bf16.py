"""Healthy: a scaler that is off for bfloat16, one for float16 beside a bfloat16 teacher, float32 with a scaler."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8))
teacher = nn.Linear(8, 8)
for dtype, guide in ((torch.bfloat16, False), (torch.float16, True), (torch.float32, False)):
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, enabled=dtype is not torch.bfloat16)
    for _ in range(12):
        x = torch.randn(16, 8)
        wanted = x
        if guide:
            with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
                wanted = teacher(x).float()
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=dtype, enabled=dtype is not torch.float32):
            loss = nn.functional.mse_loss(model(x).float(), wanted)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
