# step: 3
# phase: forward
# module: encoder.layers.1.dropout1
# cause: seed

import random

import torch
from torch import nn

UNSEEDED = random.Random()


class Jitter(nn.Module):
    """A dropout of one's own, on a generator of one's own."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, hidden):
        self.calls += 1
        return hidden * (1 + 1e-5 * UNSEEDED.random()) if self.calls == 3 else hidden


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True)
        self.embed = nn.Embedding(50, 16)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.encoder.layers[1].dropout1 = Jitter()
        self.head = nn.Linear(16, 5)

    def forward(self, tokens):
        return self.head(self.encoder(self.embed(tokens)))


torch.manual_seed(1)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(6):
    tokens = torch.randint(0, 50, (4, 12))
    loss = nn.functional.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten() % 5)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
