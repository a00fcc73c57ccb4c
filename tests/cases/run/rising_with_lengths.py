"""Sums over sequences that grow."""

import torch
from torch import nn

torch.manual_seed(0)


def network(out, rate=1e-3):
    model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, out))
    return model, torch.optim.Adam(model.parameters(), rate)


def learn(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


model, optimizer = network(4)
for number in range(160):
    x = torch.randn(4 + number, 8)
    learn(optimizer, nn.functional.cross_entropy(model(x), x[:, :4].argmax(1), reduction="sum"))
