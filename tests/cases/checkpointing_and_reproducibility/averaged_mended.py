"""Averaged weights made from a state: as it should be."""

from torch import nn


class Ema:
    def __init__(self, model: nn.Module, decay=0.999):
        self.shadow = {k: v.clone() for k, v in model.state_dict().items()}
        self.decay = decay

    def update(self, model: nn.Module):
        for k, v in model.state_dict().items():
            self.shadow[k].mul_(self.decay).add_(v, alpha=1 - self.decay)
