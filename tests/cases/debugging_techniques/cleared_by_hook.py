"""zero_grad is called by way of a hook."""

import torch
from torch import nn


def train(model: nn.Module, loader):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.register_step_post_hook(lambda done, *_: done.zero_grad())
    for x, y in loader:
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
