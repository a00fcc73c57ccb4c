"""Classes and methods under decorators that are not followed: they stay what they are."""

import torch
from registry import dispatch, documented, register, timed
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


def hooked(function):
    """Of the project itself, too; what it calls is not."""

    def wrapper(self, *args, **kwargs):
        return dispatch(function, self, args, kwargs)

    return wrapper


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    @hooked
    def forward(self, x):
        y = torch.relu(self.head(x))
        y.unsqueeze(1)  # expect: result-dropped
        return y.sum()


class Arms(nn.Module):
    """What stands behind an else, under a condition of its own."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.head = nn.Linear(8, 2)

    def forward(self, x, mask: torch.Tensor | None = None):
        y = self.head(x)
        if self.config.is_fast:
            mask = mask.bool() if mask is not None else None
        else:
            if self.config.has_mask and mask is not None:
                if mask.dim() == 2:
                    mask.unsqueeze(1)  # expect: result-dropped
                y = y.masked_fill(mask, 0.0)
            else:
                mask = None
        return y
