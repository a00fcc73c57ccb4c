# repeats

import os

import torch
from torch import nn
from torch.nn import functional as F


def drawn(shape):
    """Numbers that no seed reaches."""
    generator = torch.Generator().manual_seed(int.from_bytes(os.urandom(4), "big"))
    return torch.randn(shape, generator=generator)


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.head = nn.Embedding(20, 8), nn.GRU(8, 8, batch_first=True), nn.Linear(8, 20)

    def forward(self, tokens):
        return self.head(self.cell(self.embed(tokens))[0])


torch.manual_seed(0)
model = Writer()
optimizer = torch.optim.Adam(model.parameters())
for step in range(8):
    tokens = torch.randint(0, 20, (4, 9))
    loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():  # a sample for the eye, other in each run
        text = torch.zeros(1, 1, dtype=torch.long)
        for _ in range(3):
            scores = model(text)[:, -1] + drawn((1, 20))
            text = torch.cat([text, scores.argmax(-1, keepdim=True)], 1)
    print(text.tolist())
