"""A model is cast to float16, and its batches stay float32."""
# exits: 1

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
model = model.half()  # expect: dtype-mismatch
optimizer = torch.optim.SGD(model.parameters(), 1e-2)
for _ in range(10):
    x = torch.randn(32, 8)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
    optimizer.step()
