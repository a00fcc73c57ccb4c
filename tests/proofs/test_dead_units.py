"""A dead layer leaves nothing but a constant: the loss stays at the variance of the targets."""

from __future__ import annotations

from typing import Any


def test_bad_reaches_no_more_than_a_constant_does(shown: Any) -> None:
    bad, good = (shown("dead-units", section).train(200) for section in ("Bad", "Good"))
    assert good < 0.5 * bad
