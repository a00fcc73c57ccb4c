# step: 4
# phase: forward
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


class Shaky(nn.Linear):
    calls = 0

    def forward(self, hidden):
        self.calls += 1
        hidden = super().forward(hidden)
        return hidden + 0.1 * drawn(hidden.shape) if self.calls == 4 else hidden


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), Shaky(16, 3))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(8):
    features, labels = torch.randn(16, 8), torch.randint(0, 3, (16,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(features), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
