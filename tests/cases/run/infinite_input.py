"""No loader, and an infinity that tanh hides: the loss is finite, a gradient is not."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(160, 8)
x[:, 2] = 1 / x[:, 2].round().abs().clamp(min=0.0)
x[:100, 2] = 0.5
y = x[:, :2].sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
for start in range(0, 160, 8):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(x[start : start + 8]), y[start : start + 8])
    loss.backward()
    optimizer.step()  # expect: input-not-finite
