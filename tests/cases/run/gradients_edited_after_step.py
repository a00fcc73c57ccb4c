"""Gradients that are edited after the step, and meant: kept for the next one, looked at in another unit, masked."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(640, 8)
y = x.sum(1, keepdim=True).tanh()


def batches():
    for start in range(0, 640, 16):
        yield x[start : start + 16], y[start : start + 16]


kept = nn.Linear(8, 1)
optimizer = torch.optim.SGD(kept.parameters(), 1e-2)
for inputs, targets in batches():
    nn.functional.mse_loss(kept(inputs), targets).backward()
    norm = torch.stack([p.grad.norm() for p in kept.parameters()]).norm()
    for p in kept.parameters():
        p.grad.mul_(1 / norm.clamp(min=1.0))
    optimizer.step()
    for p in kept.parameters():
        p.grad.mul_(0.1 * float(torch.rand(())))  # what is left of it goes into the next step

scaled = nn.Linear(8, 1)
optimizer = torch.optim.SGD(scaled.parameters(), 1e-2)
largest = 0.0
for inputs, targets in batches():
    optimizer.zero_grad()
    nn.functional.mse_loss(scaled(inputs), targets).backward()
    optimizer.step()
    for p in scaled.parameters():
        p.grad.div_(16)  # per sample, to be printed
        largest = max(largest, p.grad.abs().max().item())

masked = nn.Linear(8, 1)
optimizer = torch.optim.SGD(masked.parameters(), 1e-2)
mask = (torch.arange(8) % 2).float()
for inputs, targets in batches():
    optimizer.zero_grad()
    nn.functional.mse_loss(masked(inputs), targets).backward()
    optimizer.step()
    masked.weight.grad.mul_(mask)
    largest = max(largest, masked.weight.grad.abs().max().item())
