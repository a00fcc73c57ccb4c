"""An ascent: what was learned is to be forgotten."""

import torch
from torch import nn

torch.manual_seed(0)


def learn(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 4))
optimizer = torch.optim.SGD(model.parameters(), 1e-1, maximize=True)
for _ in range(160):
    x = torch.randn(32, 8)
    learn(optimizer, nn.functional.cross_entropy(model(x), x[:, :4].argmax(1)))
