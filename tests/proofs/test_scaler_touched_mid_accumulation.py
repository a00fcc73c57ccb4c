"""Unscaling between two batches leaves of the first 1/65536."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def setting():
    """A weight at 0 whose gradients from the two batches are -1 and -2 (before they are divided by 2)."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    batches = [(torch.ones(1, 1), torch.full((1, 1), 0.5)), (torch.ones(1, 1), torch.full((1, 1), 1.0))]
    return model, batches, torch.optim.SGD(model.parameters(), lr=1.0), torch.amp.GradScaler("cpu")


def moved(train) -> float:
    model, batches, optimizer, scaler = setting()
    train(model, batches, optimizer, scaler, 2)
    return model.weight.item()


def test_only_the_last_batch_counts(shown) -> None:
    assert moved(shown("scaler-touched-mid-accumulation", "Bad").train) == pytest.approx(1.0 + 0.5 / 65536, rel=1e-6)


def test_both_batches_count_when_the_scaler_waits(shown) -> None:
    assert moved(shown("scaler-touched-mid-accumulation", "Good").train) == pytest.approx(1.5, rel=1e-6)


def test_unscale_alone_and_update_alone_raise() -> None:
    model, batches, optimizer, scaler = setting()
    scaler.scale(model(batches[0][0]).sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks were recorded prior to update"):
        scaler.update()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="has already been called"):
        scaler.unscale_(optimizer)
