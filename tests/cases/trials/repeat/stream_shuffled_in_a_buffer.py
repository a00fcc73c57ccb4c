# step: 2
# phase: data
# cause: data-order

import random

import torch
from torch import nn
from torch.nn import functional as F


class Stream(torch.utils.data.IterableDataset):
    """The first batch is in order; what follows is drawn from a buffer."""

    def __iter__(self):
        chosen = random.Random()
        values = [number / 64 for number in range(64)]
        rest = values[8:]
        chosen.shuffle(rest)
        for value in values[:8] + rest:
            yield torch.tensor([value, value * value]), torch.tensor([value**3])


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(Stream(), batch_size=8)
for epoch in range(1):
    for features, aims in loader:
        loss = F.mse_loss(model(features), aims)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
