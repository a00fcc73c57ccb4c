"""A schedule that is not gone through leaves the weights at a rate that is still large."""

from __future__ import annotations

from statistics import median

import pytest
import torch


def error(model: torch.nn.Module) -> float:
    return float((model.weight.detach() - 1).square().sum())


def test_a_schedule_that_counts_steps_and_is_called_per_epoch_hardly_begins(shown) -> None:
    _, scheduler = shown("schedule-unfinished", "Bad").train()
    assert (scheduler.last_epoch, scheduler.total_steps) == (10, 300)


def test_the_rate_stays_at_its_largest_and_falls_to_nothing_when_gone_through(shown) -> None:
    (_, bad), (_, good) = (shown("schedule-unfinished", block).train() for block in ("Bad", "Good"))
    assert bad.get_last_lr() == [pytest.approx(0.05, rel=0.01)]
    assert good.get_last_lr() == [pytest.approx(0, abs=1e-5)]


def test_both_learn_and_the_error_of_the_schedule_cut_short_is_a_multiple(shown) -> None:
    bad, good = (
        [error(shown("schedule-unfinished", block).train(seed=seed)[0]) for seed in range(8)]
        for block in ("Bad", "Good")
    )
    torch.manual_seed(0)
    assert error(torch.nn.Linear(8, 1)) > 5
    assert max(*bad, *good) < 0.5
    ratios = [one / other for one, other in zip(bad, good, strict=True)]
    assert min(ratios) > 2
    assert median(ratios) > 5
