# step: 3
# phase: update
# module: null
# cause: time-or-entropy

import os

import torch
from torch import nn
from torch.nn import functional as F


def drawn(shape):
    """Numbers that no seed reaches."""
    generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "big"))
    return torch.randn(shape, generator=generator)


class Langevin(torch.optim.SGD):
    """Adds noise to what it has updated, from a source that no seed reaches."""

    turns = 0

    @torch.no_grad()
    def step(self, closure=None):
        found = super().step(closure)
        self.turns += 1
        if self.turns >= 3:
            for group in self.param_groups:
                for parameter in group["params"]:
                    parameter.add_(1e-5 * drawn(parameter.shape))
        return found


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
optimizer = Langevin(model.parameters(), lr=0.1)
for step in range(10):
    features, labels = torch.randn(16, 8), torch.randint(0, 3, (16,))
    loss = F.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
