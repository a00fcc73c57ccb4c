"""The loss scale is read off the scaler, and the gradients are divided by it."""

import torch
from torch import nn
from torch.amp import GradScaler


def divided(model: nn.Module, loader, optimizer, scaler: GradScaler):
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
        for parameter in model.parameters():
            parameter.grad /= scaler._scale
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scaler.update()
