# step: 5
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


class Soft(nn.Module):
    calls = 0

    def forward(self, logits):
        self.calls += 1
        return logits + 1e-5 * drawn(logits.shape) if self.calls == 5 else logits


torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(8, 3), Soft())
student = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
optimizer = torch.optim.Adam(student.parameters())
for _ in range(8):
    features = torch.randn(16, 8)
    with torch.no_grad():
        aims = teacher(features).softmax(-1)
    loss = F.cross_entropy(student(features), aims)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
