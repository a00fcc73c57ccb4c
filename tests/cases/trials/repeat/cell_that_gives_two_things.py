# step: 3
# phase: forward
# module: memory
# cause: time-or-entropy

import uuid

import torch
from torch import nn


class Memory(nn.LSTM):
    calls = 0

    def forward(self, sequence, state=None):
        self.calls += 1
        given, (hidden, cell) = super().forward(sequence, state)
        if self.calls == 3:
            cell = cell + (uuid.uuid4().int % 1000) * 1e-8
        return given, (hidden, cell)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory, self.head = Memory(4, 8, batch_first=True), nn.Linear(16, 2)

    def forward(self, sequence):
        given, (_, cell) = self.memory(sequence)
        return self.head(torch.cat([given[:, -1], cell[-1]], -1))


torch.manual_seed(0)
model = Reader()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(7):
    loss = nn.functional.cross_entropy(model(torch.randn(5, 6, 4)), torch.randint(0, 2, (5,)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
