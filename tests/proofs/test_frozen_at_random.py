"""A head learns little from random layers, and more from layers that another task has trained."""

from __future__ import annotations


def test_a_head_on_layers_at_random_ends_at_twice_the_loss(shown) -> None:
    bad, good = (shown("frozen-at-random", section).train() for section in ("Bad", "Good"))
    assert bad > 2 * good
