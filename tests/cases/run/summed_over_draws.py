"""Sums of losses that are meant: several draws from one graph, and several heads upon one body."""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Sequential(nn.Linear(6, 32), nn.Tanh()), nn.Linear(32, 1)
heads = nn.ModuleList(nn.Linear(32, 1) for _ in range(3))
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters(), *heads.parameters()], lr=1e-2)
for number in range(24):
    x = torch.randn(32, 6)
    features = body(x)
    for draw in range(3):
        use = head if number % 2 else heads[draw]
        loss = (use(features + 0.1 * torch.randn_like(features)) - x.sum(1, keepdim=True)).pow(2).mean()
        loss.backward(retain_graph=draw < 2)
    optimizer.step()
    optimizer.zero_grad()
