"""A network of which only the norms are trained learns far less."""

from __future__ import annotations


def test_the_loss_is_more_than_twice_that_with_the_norms_frozen(shown) -> None:
    bad, good = (shown("only-norms-trained", block).train() for block in ("Bad", "Good"))
    assert bad > 2 * good
