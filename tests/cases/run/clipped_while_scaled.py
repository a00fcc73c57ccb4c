"""The function is imported by name, and called before the scaler has unscaled."""

from torch.nn.utils import clip_grad_norm_  # isort: skip  (first, before torch itself is complete)
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for _ in range(20):
    optimizer.zero_grad()
    loss = model(torch.randn(16, 8)).pow(2).mean()
    scaler.scale(loss).backward()
    clip_grad_norm_(model.parameters(), 1.0)  # expect: clip-before-unscale step 0
    scaler.step(optimizer)
    scaler.update()
