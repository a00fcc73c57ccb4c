"""A function cannot know that the module is in evaluation."""

from __future__ import annotations

import pytest
import torch
from torch import nn


@pytest.mark.parametrize("section", ["Bad", "Good"])
def test_in_evaluation_only_the_told_dropout_stops(shown, section: str) -> None:
    torch.manual_seed(0)
    model = shown("dropout-always-on", section).Head(64, 4).eval()
    x = torch.randn(8, 64)
    assert torch.equal(model(x), model(x)) == (section == "Good")


def test_half_of_the_values_are_zero_and_the_rest_doubled() -> None:
    torch.manual_seed(0)
    dropped = nn.functional.dropout(torch.ones(10_000), p=0.5)
    assert set(dropped.tolist()) == {0.0, 2.0}
    assert (dropped == 0).float().mean().item() == pytest.approx(0.5, abs=0.05)


def test_a_layer_made_on_the_spot_is_in_training_mode() -> None:
    assert nn.Dropout(0.5).training
