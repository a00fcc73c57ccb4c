"""A gradient with the wrong sign takes the loss far above its start."""

from __future__ import annotations

import math
from statistics import median

import pytest


def test_with_the_wrong_sign_the_loss_climbs(shown) -> None:
    losses = shown("loss-diverged", "Bad").train()
    assert losses[0] == pytest.approx(1.4, abs=0.15)
    assert median(losses[150:200]) > 10
    with pytest.raises(OverflowError, match="math range error"):
        math.exp(losses[-1])


def test_no_other_loss_is_out_of_the_range_of_the_exponential() -> None:
    assert math.isnan(math.exp(math.nan))
    assert math.exp(math.inf) == math.inf
    assert math.isfinite(math.exp(709))


def test_with_the_right_one_it_falls(shown) -> None:
    assert median(shown("loss-diverged", "Good").train(200)[-20:]) < 0.5
