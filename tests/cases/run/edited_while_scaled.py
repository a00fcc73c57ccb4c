"""Gradients changed by hand: divided by a number of tokens, centred, clipped after unscale_ or to a scaled limit."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)


def shorten(most):
    norm = torch.stack([p.grad.pow(2).sum() for p in model.parameters()]).sum().sqrt()
    for p in model.parameters():
        p.grad.mul_((most / (norm + 1e-6)).clamp(max=1.0))


for step in range(60):
    optimizer.zero_grad()
    x = torch.randn(int(torch.randint(8, 24, (1,))), 8)
    loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True), reduction="sum")
    scaler.scale(loss).backward()
    for p in model.parameters():
        p.grad /= len(x)
    if step >= 30:
        shorten(0.5 * scaler.get_scale())
    elif step % 2:
        for p in model.parameters():
            p.grad = p.grad - p.grad.mean()
    scaler.unscale_(optimizer)
    shorten(0.5)
    scaler.step(optimizer)
    scaler.update()
