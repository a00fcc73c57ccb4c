import copy

import torch
import torch.nn as nn


class ModelEMA:
    """A running mean of a model's weights. Buffers are copied as they are."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay
        self.updates = 0

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        self.updates += 1
        # a short memory in the beginning, so that the initial weights are soon forgotten
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        for mean, value in zip(self.module.parameters(), model.parameters(), strict=True):
            mean.lerp_(value, 1.0 - decay)
        for mean, value in zip(self.module.buffers(), model.buffers(), strict=True):
            mean.copy_(value)

    def state_dict(self) -> dict:
        return {"module": self.module.state_dict(), "updates": self.updates}

    def load_state_dict(self, state: dict) -> None:
        self.module.load_state_dict(state["module"])
        self.updates = state["updates"]
