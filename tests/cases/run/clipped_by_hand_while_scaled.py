"""A helper measures the norm of all gradients and shortens them, before the scaler has divided them by its scale."""

import torch
from torch import nn


def shorten(parameters, most):
    grads = [p.grad for p in parameters if p.grad is not None]
    norm = torch.stack([grad.pow(2).sum() for grad in grads]).sum().sqrt()
    factor = most / (norm + 1e-6)
    if factor < 1:
        for grad in grads:
            grad *= factor  # expect: clip-before-unscale


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for _ in range(30):
        optimizer.zero_grad()
        x = torch.randn(16, 8)
        loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        scaler.scale(loss).backward()
        shorten(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


main()
