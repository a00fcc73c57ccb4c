"""A hinge whose margins are a product of scores (N, 1) and signs (N,); beside it, one over all pairs on purpose."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(640, 5)
signs = x[:, 0].sign()
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for start in range(0, 640, 16):
    score, sign = model(x[start : start + 16]), signs[start : start + 16]
    loss = (1 - sign * score).clamp(min=0).mean()  # expect: loss-broadcast
    apart = (1 - (score - score.t()) * (sign[:, None] - sign[None, :])).clamp(min=0).mean()
    optimizer.zero_grad()
    (loss + 0.1 * apart).backward()
    optimizer.step()
