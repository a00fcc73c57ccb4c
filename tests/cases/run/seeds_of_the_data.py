"""NumPy is seeded so that the data stay the same; each run trains other weights on purpose, or says nothing of seeds."""

import numpy as np
import torch
from torch import nn

np.random.seed(0)
points = torch.from_numpy(np.random.randn(64, 8)).float()
model = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.2), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for _ in range(30):
    x = points[torch.randperm(64)[:16]]
    optimizer.zero_grad()
    (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
    optimizer.step()
