"""Without step() the weights stay where they started, gradients or not."""

from __future__ import annotations

import pytest
import torch
from torch import nn


@pytest.mark.parametrize(("section", "learned"), [("Bad", False), ("Good", True)])
def test_the_weights_move_only_when_the_optimizer_steps(shown, section: str, learned: bool) -> None:
    torch.manual_seed(0)
    start = nn.Linear(4, 1)
    model = shown("step-missing", section).train()
    assert model.weight.grad is not None
    assert model.weight.grad.abs().max() > 0
    assert torch.equal(model.weight, start.weight) is not learned


def test_only_the_mended_script_learns(shown) -> None:
    x = torch.randn(256, 4, generator=torch.Generator().manual_seed(1))
    bad, good = (
        nn.functional.mse_loss(shown("step-missing", section).train()(x), x.sum(1, keepdim=True)).item()
        for section in ("Bad", "Good")
    )
    assert good < bad / 10
