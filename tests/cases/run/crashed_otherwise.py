"""Ids at their limits, labels left out, a list that is too short: the run ends by an IndexError of Python.  # exits: 1"""

import torch
from torch import nn

torch.manual_seed(0)
tokens = torch.randint(0, 50, (160, 8))
tokens[0, 0], tokens[0, 1] = 0, 49
tags = tokens[:, 0] % 3
tags[::4] = -100
model = nn.Sequential(nn.Embedding(50, 16), nn.Flatten(), nn.Linear(128, 3))
optimizer = torch.optim.Adam(model.parameters(), 1e-2)
names = ["epoch"]
for start in range(0, 160, 8):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(tokens[start : start + 8]), tags[start : start + 8]).backward()
    optimizer.step()
print(names[1])
