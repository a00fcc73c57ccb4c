"""None is no part of a batch."""

from __future__ import annotations

import pytest


def test_none_among_the_samples_is_refused(shown) -> None:
    with pytest.raises(TypeError, match="batch must contain tensors"):
        shown("batch-not-collatable", "Bad").train()


def test_the_other_samples_make_batches(shown) -> None:
    shown("batch-not-collatable", "Good").train()
