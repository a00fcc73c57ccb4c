"""Adam's decay rates in the wrong order: gradients are averaged over a thousand steps."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
betas = (0.999, 0.9)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.003, betas=betas)  # expect: betas-swapped
for _ in range(80):
    x = torch.randn(64, 8)
    loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
