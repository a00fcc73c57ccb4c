"""A base learning rate for a batch of 256 is multiplied by the batch size: numbers overflow in a few steps."""

import torch
from torch import nn


def scaled(rate, size, reference=1):
    return rate * size / reference


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=scaled(0.1, 40))
x = torch.randn(400, 8)
y = x.sum(1, keepdim=True)
for _step in range(30):
    chosen = torch.randint(0, 400, (40,))
    loss = nn.functional.mse_loss(model(x[chosen]), y[chosen])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # expect: gradients-exploding
