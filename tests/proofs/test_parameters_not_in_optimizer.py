"""An optimizer holds the tensors it was given, whatever becomes of the model."""

from __future__ import annotations

import pytest
import torch
from torch import nn

BATCH = (torch.randn(16, 8, generator=torch.Generator().manual_seed(0)), torch.arange(16) % 3)


@pytest.mark.parametrize(("section", "learns"), [("Bad", False), ("Good", True)])
def test_a_layer_that_comes_after_the_optimizer_stays_at_its_start(shown, section: str, learns: bool) -> None:
    torch.manual_seed(0)
    model, start = shown("parameters-not-in-optimizer", section).finetune([BATCH] * 50, 3)
    assert model.head.weight.grad.abs().max() > 0
    assert torch.equal(model.head.weight, start) is not learns


def test_moving_keeps_the_parameters() -> None:
    model = nn.Linear(2, 2)
    before = {id(p) for p in model.parameters()}
    assert {id(p) for p in model.to(torch.float64).parameters()} == before


def test_a_group_that_is_added_learns() -> None:
    model, new = nn.Linear(2, 2), nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.add_param_group({"params": new.parameters()})
    start = new.weight.detach().clone()
    new(model(torch.ones(1, 2))).sum().backward()
    optimizer.step()
    assert not torch.equal(new.weight, start)
