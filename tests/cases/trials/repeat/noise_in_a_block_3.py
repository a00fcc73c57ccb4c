# step: 8
# phase: forward
# module: blocks.2
# cause: time-or-entropy

import os

import torch
from torch import nn
from torch.nn import functional as F


def drawn(shape):
    """Numbers that no seed reaches."""
    generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "big"))
    return torch.randn(shape, generator=generator)


class Block(nn.Module):
    def __init__(self, width, noisy):
        super().__init__()
        self.linear, self.noisy, self.calls = nn.Linear(width, width), noisy, 0

    def forward(self, hidden):
        self.calls += 1
        hidden = hidden + F.gelu(self.linear(hidden))
        if self.noisy and self.calls == 8:
            hidden = hidden + 1e-6 * drawn(hidden.shape)
        return hidden


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Block(8, noisy=number == 2) for number in range(3))
        self.head = nn.Linear(8, 3)

    def forward(self, hidden):
        for block in self.blocks:
            hidden = block(hidden)
        return self.head(hidden)


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    features, labels = torch.randn(16, 8), torch.randint(0, 3, (16,))
    loss = F.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
