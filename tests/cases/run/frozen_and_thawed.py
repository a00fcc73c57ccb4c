"""A head is trained first, and what is below it after that."""

import torch
from torch import nn

torch.manual_seed(0)
sizes = ((16, 64), (64, 64), (64, 64), (64, 64))
body = nn.Sequential(*(layer for pair in sizes for layer in (nn.Linear(*pair), nn.ReLU())))
model = nn.Sequential(body, nn.Linear(64, 4))
body.requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
for step in range(60):
    if step == 40:
        body.requires_grad_(True)
    x = torch.randn(64, 16)
    loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
