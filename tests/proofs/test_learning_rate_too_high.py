"""A rate at which the first update is larger than the weights leaves a loss above that of a guess."""

from __future__ import annotations

import math
from statistics import median


def test_at_a_rate_of_one_nothing_is_learned(shown) -> None:
    losses, sizes = shown("learning-rate-too-high", "Bad").train()
    assert max(sizes) > 3
    assert max(losses[:20]) > 2 * losses[0]
    assert median(losses[-50:]) > math.log(4)


def test_at_a_usual_rate_the_loss_falls(shown) -> None:
    assert median(shown("learning-rate-too-high", "Good").train()[-50:]) < math.log(4) / 2
