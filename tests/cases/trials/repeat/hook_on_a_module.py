# step: 3
# phase: backward
# module: 0
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
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
calls = 0


def shaken(_module, _given, gradients):
    """Into the first layer's weights goes what comes down from above, with noise on it."""
    global calls
    calls += 1
    return tuple(each + 1e-7 * drawn(each.shape) for each in gradients) if calls == 3 else None


model[0].register_full_backward_pre_hook(lambda module, gradients: shaken(module, None, gradients))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    features, labels = torch.randn(16, 8), torch.randint(0, 3, (16,))
    loss = F.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
