"""A check of the gradients reads their numbers one by one, in each step."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for _ in range(60):
    x = torch.randn(32, 32)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), x[:, :4].argmax(1)).backward()
    largest = max(abs(value.item()) for each in model.parameters() for value in each.grad.flatten())  # expect: python-loop-over-tensor
    assert largest < 100
    optimizer.step()
