"""A schedule that moves first loses its first rate, and torch says so only once."""

from __future__ import annotations

import pytest
import torch
from torch import nn

BATCH = [(torch.ones(4, 2), torch.ones(4, 1))]


def test_the_first_epoch_runs_at_the_second_rate(shown) -> None:
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step"):
        rates = shown("scheduler-before-optimizer", "Bad").train(nn.Linear(2, 1), BATCH, 3)
    assert rates == pytest.approx([0.01, 0.001, 0.0001])


def test_called_last_each_epoch_has_its_own_rate(shown) -> None:
    rates = shown("scheduler-before-optimizer", "Good").train(nn.Linear(2, 1), BATCH, 3)
    assert rates == pytest.approx([0.1, 0.01, 0.001])


def rates_used(milestone: int, epochs: int) -> list[float]:
    optimizer = torch.optim.SGD(nn.Linear(2, 1).parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[milestone])
    used = []
    for _ in range(epochs):
        schedule.step()
        used.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
    return used


def test_milestones_come_one_epoch_early() -> None:
    with pytest.warns(UserWarning, match="Detected call of `lr_scheduler.step"):
        used = rates_used(milestone=2, epochs=3)
    assert used == pytest.approx([1.0, 0.1, 0.1])
