"""Without update() the second step of the same optimizer raises; so does a second unscale_."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def two_batches(train, **settings) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    batches = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(2)]
    scaler = torch.amp.GradScaler("cpu", **settings)
    train(model, batches, torch.optim.SGD(model.parameters(), lr=0.1), scaler, "cpu")


def test_the_second_step_without_an_update_raises(shown) -> None:
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called since the last update\(\)"):
        two_batches(shown("scaler-not-updated", "Bad").train)


def test_a_scaler_that_is_switched_off_hides_it(shown) -> None:
    two_batches(shown("scaler-not-updated", "Bad").train, enabled=False)


def test_with_an_update_both_batches_train(shown) -> None:
    two_batches(shown("scaler-not-updated", "Good").train)


def test_a_second_unscale_raises_and_so_does_one_after_the_step() -> None:
    model = nn.Linear(2, 1)
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.ones(1, 2)).sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="has already been called on this optimizer since the last update"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="is being called after step"):
        scaler.unscale_(optimizer)
