"""The temperature of a loss belongs to an object that is no module, and to no optimizer."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Pairs:
    def __init__(self):
        self.temperature = nn.Parameter(torch.tensor(2.0))

    def loss(self, left, right):
        scores = F.normalize(left, dim=1) @ F.normalize(right, dim=1).t() * self.temperature.exp()
        return F.cross_entropy(scores, torch.arange(len(left)))


towers = nn.ModuleList([nn.Linear(8, 16), nn.Linear(6, 16)])
pairs = Pairs()
optimizer = torch.optim.Adam(towers.parameters(), 1e-3)  # expect: parameters-not-in-optimizer
between = torch.randn(8, 6)
for _ in range(60):
    x = torch.randn(16, 8)
    loss = pairs.loss(towers[0](x), towers[1](x @ between))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
