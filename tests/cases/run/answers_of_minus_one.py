"""Labels of -1 and 1, as for a hinge loss, in a binary cross entropy."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
for _ in range(60):
    x = torch.randn(32, 8)
    y = torch.sign(x[:, :1] + x[:, 1:2])
    loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)  # expect: wrong-loss-input
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
