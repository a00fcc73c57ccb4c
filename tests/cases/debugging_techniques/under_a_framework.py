"""Accelerate runs the backward pass; clearing the gradients stays with the loop."""

import torch
from accelerate import Accelerator
from torch import nn


def train(model: nn.Module, loader):
    accelerator = Accelerator()
    optimizer = torch.optim.AdamW(model.parameters())
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        accelerator.backward(loss)  # expect: gradients-not-zeroed
        optimizer.step()
