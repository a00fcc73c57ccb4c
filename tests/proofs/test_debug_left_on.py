"""Anomaly detection keeps a Python stack for every operation of every step."""

from __future__ import annotations

import pytest
import torch
from torch import nn

stacks: list[bool] = []


class Watched(nn.Module):
    """Notes for each forward pass whether torch keeps a stack for its operations."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        outputs = self.layer(inputs)
        stacks.append("traceback_" in outputs.grad_fn.metadata)
        return outputs


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize(("section", "kept"), [("Bad", True), ("Good", False)])
def test_every_operation_keeps_its_stack(shown, section: str, kept: bool) -> None:
    stacks.clear()
    model, batch = Watched(), (torch.ones(4, 2), torch.ones(4, 1))
    try:
        shown("debug-left-on", section).train(model, [batch] * 3, torch.optim.SGD(model.parameters(), lr=0.1))
    finally:
        torch.autograd.set_detect_anomaly(False)
    assert stacks == [kept] * 3
