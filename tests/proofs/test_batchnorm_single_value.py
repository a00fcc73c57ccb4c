"""A batch of one sample has no deviation."""

from __future__ import annotations

import pytest


def test_a_last_batch_of_one_raises(shown) -> None:
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        shown("batchnorm-single-value", "Bad").train()


def test_an_epoch_without_it_runs_through(shown) -> None:
    shown("batchnorm-single-value", "Good").train()
