"""The old names only where an older torch does not have the new ones."""

import torch
from torch import nn

try:
    from torch.amp import GradScaler, autocast
except ImportError:
    from torch.cuda.amp import GradScaler, autocast


def train(model: nn.Module, loader, optimizer: torch.optim.Optimizer):
    scaler = GradScaler()
    for x, y in loader:
        optimizer.zero_grad()
        with autocast("cuda"):
            loss = nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
