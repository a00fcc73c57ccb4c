"""Gradients are cleared before the step that wants them, and a second step comes after it."""

import torch
from torch import nn


def train(loader):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.zero_grad()  # expect: zeroed-before-step
        optimizer.step()
        optimizer.step()
