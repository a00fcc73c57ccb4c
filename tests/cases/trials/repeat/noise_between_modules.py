# step: 6
# phase: forward
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


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.calls = nn.Linear(8, 8), nn.Linear(8, 3), 0

    def forward(self, features):
        self.calls += 1
        hidden = self.first(features)
        if self.calls == 6:
            hidden = hidden + 1e-6 * drawn(hidden.shape)
        return self.second(hidden)


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    features, labels = torch.randn(16, 8), torch.randint(0, 3, (16,))
    loss = F.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
