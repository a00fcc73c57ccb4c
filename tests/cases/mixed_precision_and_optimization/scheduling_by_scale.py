"""The scheduler waits when the scale has fallen, which tells that the step was skipped."""

import torch.nn.functional as F
from torch import nn, optim
from torch.amp import GradScaler, autocast
from torch.optim.lr_scheduler import CosineAnnealingLR


def unless_skipped(model: nn.Module, loader, steps):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    scheduler = CosineAnnealingLR(optimizer, steps)
    scaler = GradScaler("cuda")
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() >= before:
            scheduler.step()
