"""The scheduler counts the step that the scaler skipped, and torch warns when it was the first."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def counted(train, first: float) -> int:
    """How far the scheduler comes in 5 batches, the first of which has targets of size FIRST."""
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    batches = [(torch.randn(4, 2), torch.randn(4, 1)) for _ in range(5)]
    batches[0] = (batches[0][0], torch.full((4, 1), first))
    scaler = torch.amp.GradScaler("cpu", init_scale=1.0)
    return train(model, batches, torch.optim.SGD(model.parameters(), lr=1e-3), scaler)


def test_a_skipped_first_step_is_counted_and_torch_warns(shown) -> None:
    with pytest.warns(UserWarning, match=r"lr_scheduler.step\(\)` before `optimizer.step\(\)"):
        assert counted(shown("scheduler-on-skipped-step", "Bad").train, float("inf")) == 5


def test_asking_the_scale_leaves_it_out(shown) -> None:
    assert counted(shown("scheduler-on-skipped-step", "Good").train, float("inf")) == 4


def test_nothing_is_left_out_when_nothing_is_skipped(shown) -> None:
    assert counted(shown("scheduler-on-skipped-step", "Good").train, 1.0) == 5
