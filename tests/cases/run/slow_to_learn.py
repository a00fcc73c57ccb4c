"""Losses near chance for long, and healthy: a warm-up, and a domain classifier that is to be fooled."""

import torch
from torch import nn


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -gradient


torch.manual_seed(0)
x = torch.randn(320, 8)
y = x[:, :5].argmax(1)
domain = torch.arange(320) % 2
body, head, guess = nn.Sequential(nn.Linear(8, 32), nn.ReLU()), nn.Linear(32, 5), nn.Linear(32, 2)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters(), *guess.parameters()], 1e-2)
nn.init.zeros_(head.weight)
warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(1e-5, min(1.0, (step - 60) / 60)))
for number in range(180):
    part = torch.arange(number * 16, (number + 1) * 16) % 320
    features = body(x[part])
    loss = nn.functional.cross_entropy(head(features), y[part])
    if number % 3 == 0:
        loss = loss + nn.functional.cross_entropy(guess(Reversed.apply(features)), domain[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    warm.step()
