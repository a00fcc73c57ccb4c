"""An optimizer is built, gradients are computed, and nobody calls step."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for _ in range(30):
    optimizer.zero_grad()
    model(torch.randn(16, 8)).pow(2).mean().backward()  # expect: step-missing
