"""An Accelerator that neither scales nor accumulates for sure, and a loop that uses its backward."""

import accelerate
import torch
from torch import nn


def plain(model, optimizer, loader):
    accelerator = accelerate.Accelerator(log_with="tensorboard")
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
