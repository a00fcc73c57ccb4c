"""A schedule that is not gone through leaves the weights at a rate that is still large."""

from __future__ import annotations

import torch


def error(model: torch.nn.Module) -> float:
    return float((model.weight.detach() - 1).square().sum())


def test_a_schedule_that_counts_steps_and_is_called_per_epoch_hardly_begins(shown) -> None:
    _, scheduler = shown("schedule-unfinished", "Bad").train()
    assert (scheduler.last_epoch, scheduler.total_steps) == (10, 300)


def test_the_error_is_more_than_twice_that_of_the_schedule_gone_through(shown) -> None:
    bad, good = (shown("schedule-unfinished", block).train() for block in ("Bad", "Good"))
    assert good[1].last_epoch == good[1].total_steps
    assert error(bad[0]) > 2 * error(good[0])
