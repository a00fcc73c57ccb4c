"""A method that is only looked up does nothing."""

from __future__ import annotations

import pytest
import torch
from torch import nn


@pytest.mark.parametrize(("section", "alike"), [("Bad", False), ("Good", True)])
def test_dropout_is_off_only_when_eval_is_called(shown, section: str, alike: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.5))
    validate, batch = shown("method-not-called", section).validate, torch.ones(4, 8)
    assert torch.equal(validate(model, [batch]), validate(model, [batch])) is alike


@pytest.mark.parametrize(("section", "moves"), [("Bad", True), ("Good", False)])
def test_batch_statistics_learn_from_validation_data(shown, section: str, moves: bool) -> None:
    model = nn.BatchNorm1d(3)
    shown("method-not-called", section).validate(model, [torch.ones(4, 3)])
    assert bool(model.running_mean.any()) is moves
