"""Healthy: a penalty's own gradients within the region, a region switched off for the backward, recomputed activations."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for step in range(20):
    x = torch.randn(16, 8, requires_grad=True)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        score = checkpoint(model, x, use_reentrant=step % 2 == 0) if step > 10 else model(x)
        loss = score.float().pow(2).mean()
        if step <= 10:
            (grad,) = torch.autograd.grad(score.float().sum(), x, create_graph=True)
            loss = loss + grad.float().norm(dim=-1).sub(1).pow(2).mean()
        if step % 3 == 0:
            with torch.autocast("cpu", enabled=False):
                loss.backward()
            optimizer.step()
            continue
    loss.backward()
    optimizer.step()
