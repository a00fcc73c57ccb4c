"""Trains with gradients of several pieces for each update; clearing them between pieces is left out on purpose."""

import torch
from torch import nn


def train(model, pieces, per_update=4, lr=0.1):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    total, updates = 0.0, 0
    for number, (inputs, targets) in enumerate(pieces, 1):
        loss = nn.functional.mse_loss(model(inputs), targets) / per_update
        loss.backward()
        total += loss.item()
        if number % per_update == 0:
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
    return total, updates
