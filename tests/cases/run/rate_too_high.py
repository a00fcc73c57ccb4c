"""A learning rate a hundred times too high: the loss of a small language model leaps up and stays above a guess."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, words=40, width=24):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Sequential(nn.Linear(width, 48), nn.GELU(), nn.Linear(48, width))
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        x = self.embed(ids)
        return self.head(x + self.inner(self.norm(x)))


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.6)
following = torch.randperm(40)
for _ in range(150):
    ids = torch.randint(0, 40, (8, 16))
    noise = torch.rand(8, 16) < 0.6
    targets = torch.where(noise, torch.randint(0, 40, (8, 16)), following[ids])
    loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())  # expect: learning-rate-too-high
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
