# step: 5
# phase: backward
# module: 2
# cause: time-or-entropy

import os

import torch
from torch import nn
from torch.nn import functional as F


def drawn(shape):
    """Numbers that no seed reaches."""
    generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "big"))
    return torch.randn(shape, generator=generator)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
calls = 0


def shaken(gradient):
    global calls
    calls += 1
    return gradient + 1e-7 * drawn(gradient.shape) if calls == 5 else gradient


model[2].weight.register_hook(shaken)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    features, labels = torch.randn(16, 8), torch.randint(0, 3, (16,))
    loss = F.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
