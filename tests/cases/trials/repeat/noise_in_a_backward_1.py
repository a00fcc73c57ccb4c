# step: 2
# phase: backward
# module: up
# cause: time-or-entropy

import os

import torch
from torch import nn
from torch.nn import functional as F


def drawn(shape):
    """Numbers that no seed reaches."""
    generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "big"))
    return torch.randn(shape, generator=generator)


class Passing(torch.autograd.Function):
    calls = 0

    @staticmethod
    def forward(ctx, hidden):
        return hidden.clone()

    @staticmethod
    def backward(ctx, gradient):
        Passing.calls += 1
        return gradient + 1e-6 * drawn(gradient.shape) if Passing.calls == 2 else gradient


class Projection(nn.Module):
    def __init__(self, size, to, shaky):
        super().__init__()
        self.linear, self.shaky = nn.Linear(size, to), shaky

    def forward(self, hidden):
        return Passing.apply(self.linear(hidden)) if self.shaky else self.linear(hidden)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = Projection(8, 32, shaky=True)
        self.down = Projection(32, 3, shaky=False)

    def forward(self, features):
        return self.down(torch.relu(self.up(features)))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    features, labels = torch.randn(16, 8), torch.randint(0, 3, (16,))
    loss = F.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
