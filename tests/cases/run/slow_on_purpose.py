"""Small updates that are meant: a network that has learned already is tuned, and one that is warming up."""

import torch
from torch import nn

torch.manual_seed(0)


def train(model, rate, steps, turned):
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    warm = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / turned))
    for _ in range(steps):
        x = torch.randn(64, 8)
        loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        warm.step()


model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
for _ in range(300):
    x = torch.randn(64, 8)
    gradients = torch.autograd.grad(nn.functional.cross_entropy(model(x), x[:, :4].argmax(1)), list(model.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(model.parameters(), gradients):
            parameter -= 0.5 * gradient
train(model, 1e-5, 150, 1)
