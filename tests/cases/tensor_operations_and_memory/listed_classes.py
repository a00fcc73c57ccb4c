"""Classes and methods under decorators that are not followed: they stay what they are."""

import torch
from registry import documented, register, timed
from torch import nn


def persistent(cls):
    """Of the project itself: it gives what a library makes of the class."""
    return register("persistent")(cls)


@register("flow")
class Flow:
    def __init__(self, model: nn.Module, loader):
        self.model, self.loader = model, loader
        self.optimizer = torch.optim.Adam(model.parameters())

    def train(self):
        total = 0
        for x, y in self.loader:
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total = total + loss  # expect: graph-retained
        return total / len(self.loader)


@persistent
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(8, 8), nn.Linear(8, 2)]  # expect: unregistered-modules

    @timed
    @documented("what it computes")
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
