"""Partials of a functional dropout: one that is never told the mode, one that each call tells it, one for the noise."""

import functools

import torch
import torch.nn.functional as F
from torch import nn

thin = functools.partial(F.dropout, p=0.2)
noise = functools.partial(F.dropout, p=0.1, training=True)


class Told(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.thin = nn.Linear(8, 8), functools.partial(F.dropout, p=0.3)

    def forward(self, x):
        return noise(self.thin(torch.relu(self.body(x)), training=self.training))


class Untold(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        return thin(torch.relu(self.body(x)))  # expect: dropout-always-on module 1


torch.manual_seed(0)
model = nn.Sequential(Told(), Untold(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
x = torch.randn(64, 8)
y = (x.sum(1) > 0).long()
for epoch in range(30):
    model.train()
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print((model(x).argmax(1) == y).float().mean().item())
