"""A plain penalty joins gradients that unscale_ has already divided, and one is multiplied by the scale itself."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for number in range(20):
    x = torch.randn(16, 8)
    optimizer.zero_grad()
    scaler.scale((model(x) - x.sum(1, keepdim=True)).pow(2).mean()).backward()
    if number % 2:
        scaler.unscale_(optimizer)
        (1e-3 * sum(parameter.pow(2).sum() for parameter in model.parameters())).backward()
    else:
        (1e-3 * sum(parameter.abs().sum() for parameter in model.parameters()) * scaler.get_scale()).backward()
    scaler.step(optimizer)
    scaler.update()
