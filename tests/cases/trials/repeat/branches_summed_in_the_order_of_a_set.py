# step: 1
# phase: forward
# module: mixture
# cause: hash-order

import torch
from torch import nn

NAMES = {"left", "right", "centre", "upper", "lower", "inner", "outer", "near", "far"}


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.branches = nn.ModuleDict({name: nn.Linear(16, 16) for name in sorted(NAMES)})

    def forward(self, hidden):
        total = torch.zeros_like(hidden)
        weight = 1.0
        for name in NAMES:
            weight *= 0.7
            total = total + weight * self.branches[name].weight.sum() * hidden
        return total


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.mixture, self.head = Mixture(), nn.Linear(16, 2)

    def forward(self, hidden):
        return self.head(self.mixture(hidden))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(5):
    loss = nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.randint(0, 2, (8,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
