"""unscale_ is taken off the scaler once and called under a name of its own."""

import torch
from torch import nn
from torch.amp import GradScaler


def bound(model: nn.Module, loader, optimizer, scaler: GradScaler):
    divide = scaler.unscale_
    for x, y in loader:
        optimizer.zero_grad()
        scaler.scale(nn.functional.cross_entropy(model(x), y)).backward()
        divide(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
