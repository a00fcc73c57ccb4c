"""A guard against losses that are no numbers waits once a batch, and is meant to."""

import torch
from torch import nn


def train(model: nn.Module, loader, optimizer):
    device = torch.device("cuda")
    model.to(device)
    for x, y in loader:
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        loss = nn.functional.mse_loss(model(x), y)
        if not torch.isfinite(loss):
            raise RuntimeError("the loss is no number")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
