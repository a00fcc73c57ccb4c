"""A loader that shuffles needs at least one sample."""

from __future__ import annotations

import pytest


def test_a_filter_that_leaves_nothing_is_refused(shown) -> None:
    with pytest.raises(ValueError, match="num_samples=0"):
        shown("dataset-empty", "Bad").loader(__import__("torch").arange(100))


def test_one_that_leaves_samples_is_taken(shown) -> None:
    shown("dataset-empty", "Good").loader(__import__("torch").arange(100))
