"""Keeps the weights of the best epoch, to be used when training has ended."""

import torch
from torch import nn


def train(model, inputs, targets, score, epochs=6, lr=0.05):
    """Trains, and leaves the model with the weights of the epoch whose score(model, epoch) was highest."""
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    best, kept = float("-inf"), None
    for epoch in range(epochs):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
        if (now := score(model, epoch)) > best:
            best, kept = now, model.state_dict()
    model.load_state_dict(kept)
    return best
