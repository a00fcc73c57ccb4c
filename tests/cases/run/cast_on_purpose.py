"""A model in bfloat16 with its batches, and one that is taken back to float32 before it trains: nothing is said."""

import torch
from torch import nn

torch.manual_seed(0)
for kind in (torch.bfloat16, torch.float32):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).bfloat16().to(kind)
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    for _ in range(20):
        x = torch.randn(32, 8)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x.to(kind)).float(), (x[:, 0] > 0).long()).backward()
        optimizer.step()
