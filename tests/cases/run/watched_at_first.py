"""Anomaly mode for the first steps, and a profiler with a schedule that records a few."""

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile, schedule

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=2, warmup=2, active=3, repeat=1)) as recorded:
    for step in range(80):
        inputs = torch.randn(8, 16)
        optimizer.zero_grad()
        with torch.autograd.set_detect_anomaly(step < 10):
            nn.functional.mse_loss(model(inputs), inputs[:, :1]).backward()
        optimizer.step()
        recorded.step()
