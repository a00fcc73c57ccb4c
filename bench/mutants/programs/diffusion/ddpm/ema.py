import copy

import torch
from torch import nn


class ExponentialMovingAverage:
    """A slowly following copy of a model, used for evaluation and sampling.

    The decay is warmed up, so that the random weights of the start are forgotten early.
    """

    def __init__(self, model: nn.Module, decay: float = 0.99) -> None:
        self.decay = decay
        self.updates = 0
        self.module = copy.deepcopy(model).eval().requires_grad_(False)

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        self.updates += 1
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for averaged, current in zip(self.module.parameters(), model.parameters(), strict=True):
            averaged.lerp_(current, 1.0 - decay)
        for averaged, current in zip(self.module.buffers(), model.buffers(), strict=True):
            averaged.copy_(current)

    def state_dict(self) -> dict:
        return {"updates": self.updates, "module": self.module.state_dict()}

    def load_state_dict(self, state: dict) -> None:
        self.updates = state["updates"]
        self.module.load_state_dict(state["module"])
