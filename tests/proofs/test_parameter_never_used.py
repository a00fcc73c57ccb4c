"""A parameter that no loss depends on keeps its start, and nobody says so."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize(("section", "learns"), [("Bad", False), ("Good", True)])
def test_only_a_parameter_that_is_used_moves(shown, section: str, learns: bool) -> None:
    torch.manual_seed(0)
    start = shown("parameter-never-used", section).Gated()
    torch.manual_seed(0)
    model, _ = shown("parameter-never-used", section).train()
    assert (model.gate.weight.grad is not None) is learns
    torch.manual_seed(0)
    start = type(model)()
    assert torch.equal(model.gate.weight, start.gate.weight) is not learns


def test_the_model_that_uses_it_learns_more(shown) -> None:
    bad, good = (shown("parameter-never-used", section).train()[1] for section in ("Bad", "Good"))
    assert good < bad / 2
