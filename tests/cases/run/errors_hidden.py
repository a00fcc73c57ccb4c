"""An `except` hides that no backward pass ever succeeds."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(30):
    x = torch.randn(32, 8)
    errors = (model(x) - x.sum(1, keepdim=True)).square()
    optimizer.zero_grad()
    try:
        errors.backward()  # expect: failure-swallowed
    except RuntimeError:
        pass
    optimizer.step()
