# step: 5
# phase: forward
# module: attention
# cause: time-or-entropy

import time

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    """Only functions inside: no module of its own sees the product."""

    def __init__(self, width):
        super().__init__()
        self.queries = nn.Parameter(torch.randn(width, width) / width)
        self.keys = nn.Parameter(torch.randn(width, width) / width)
        self.calls = 0

    def forward(self, hidden):
        self.calls += 1
        scale = 0.5 + (1e-4 * (time.time() % 1) if self.calls == 5 else 0.0)
        scores = F.linear(hidden, self.queries) @ F.linear(hidden, self.keys).transpose(1, 2) * scale
        return scores.softmax(-1) @ hidden


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.head = Attention(8), nn.Linear(8, 2)

    def forward(self, hidden):
        return self.head(self.attention(hidden).mean(1))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(9):
    loss = F.cross_entropy(model(torch.randn(6, 5, 8)), torch.randint(0, 2, (6,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
