# step: 3
# phase: forward
# module: 1
# cause: time-or-entropy

import os

import torch
from torch import nn
from torch.nn import functional as F


def drawn(shape):
    """Numbers that no seed reaches."""
    generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "big"))
    return torch.randn(shape, generator=generator)


class Shaky(nn.Module):
    calls = 0

    def forward(self, hidden):
        self.calls += 1
        return hidden + 1e-6 * drawn(hidden.shape) if self.calls == 11 else hidden


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 8), Shaky(), nn.Linear(8, 3))
optimizer = torch.optim.AdamW(model.parameters())
for step in range(24):
    loss = F.cross_entropy(model(torch.randn(4, 8)), torch.randint(0, 3, (4,))) / 4
    loss.backward()
    if step % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
