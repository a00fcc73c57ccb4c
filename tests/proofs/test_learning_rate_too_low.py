"""At a rate that is far too low all updates point one way, and come to nothing."""

from __future__ import annotations

from statistics import median


def test_at_a_thousandth_of_the_rate_the_way_is_straight_and_short(shown) -> None:
    losses, moved, straight = shown("learning-rate-too-low", "Bad").train()
    assert moved < 1e-4 * len(losses)
    assert straight > 0.7
    assert median(losses[-40:]) > 0.9 * losses[0]


def test_at_a_usual_rate_the_loss_falls(shown) -> None:
    losses = shown("learning-rate-too-low", "Good").train()
    assert median(losses[-40:]) < losses[0] / 2
