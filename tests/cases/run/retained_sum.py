"""The epoch's running loss is a tensor, so every step's graph hangs on it."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
running = 0.0
for _ in range(60):
    optimizer.zero_grad()
    loss = model(torch.randn(32, 16)).pow(2).mean()
    loss.backward()
    optimizer.step()
    running += loss  # expect: graph-retained
print(float(running))
