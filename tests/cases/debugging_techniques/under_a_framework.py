"""Accelerate owns the loop: what it does is not seen here."""

import torch
from accelerate import Accelerator
from torch import nn


def train(model: nn.Module, loader):
    accelerator = Accelerator()
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
