"""Clipping scaled gradients leaves an update of max_norm / 65536."""

from __future__ import annotations

import pytest
import torch
from torch import nn

RATE = 0.1


def update(train) -> float:
    """The norm of the gradient that SGD really used, for a batch whose own gradient norm is about 10."""
    torch.manual_seed(0)
    model = nn.Linear(32, 10)
    batch = (torch.randn(64, 32) * 10, torch.randint(0, 10, (64,)))
    before = [p.detach().clone() for p in model.parameters()]
    train(model, [batch], torch.optim.SGD(model.parameters(), lr=RATE), torch.amp.GradScaler("cpu"), "cpu")
    moved = [(p.detach() - old).flatten() / RATE for p, old in zip(model.parameters(), before, strict=True)]
    return torch.cat(moved).norm().item()


def test_clipping_scaled_gradients_all_but_stops_sgd(shown) -> None:
    assert update(shown("clip-before-unscale", "Bad").train) == pytest.approx(1 / 65536, rel=0.05)


def test_clipping_unscaled_gradients_leaves_the_norm_that_was_asked_for(shown) -> None:
    assert update(shown("clip-before-unscale", "Good").train) == pytest.approx(1.0, rel=0.05)


def test_unscaling_twice_in_one_step_raises_so_the_edit_must_not_be_applied_twice() -> None:
    model = nn.Linear(2, 1)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=RATE), torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.ones(1, 2)).sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="unscale_"):
        scaler.unscale_(optimizer)
