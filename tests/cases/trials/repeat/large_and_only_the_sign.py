# step: 2
# phase: forward
# module: 0
# cause: time-or-entropy

import os

import torch
from torch import nn


class Wide(nn.Linear):
    """One number of 131,072 changes its sign, by the toss of a coin."""

    calls = 0

    def forward(self, features):
        self.calls += 1
        hidden = super().forward(features)
        if self.calls >= 2:
            sign = torch.ones_like(hidden)
            sign[int.from_bytes(os.urandom(2), "big") % 64, 1234] = -1
            hidden = hidden * sign
        return hidden


torch.manual_seed(0)
model = nn.Sequential(Wide(8, 2048), nn.Tanh(), nn.Linear(2048, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    loss = nn.functional.cross_entropy(model(torch.randn(64, 8)), torch.randint(0, 2, (64,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
