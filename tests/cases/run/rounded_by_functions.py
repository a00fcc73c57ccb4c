"""Straight-through functions with torch's own names, and a critic behind a sign, which has a loss of its own."""

import torch
from torch import nn


class Round(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
critic = nn.Linear(8, 1)
optimizers = [torch.optim.SGD(model.parameters(), lr=0.01), torch.optim.SGD(critic.parameters(), lr=0.01)]
for _ in range(40):
    x = torch.randn(32, 8)
    target = x.sum(1, keepdim=True)
    output, worth = Round.apply(model(x) * 4) / 4, critic(x)
    for optimizer in optimizers:
        optimizer.zero_grad()
    (torch.sign(target - worth) * (output - target).square()).mean().backward(retain_graph=True)
    nn.functional.mse_loss(worth, target).backward()
    for optimizer in optimizers:
        optimizer.step()
