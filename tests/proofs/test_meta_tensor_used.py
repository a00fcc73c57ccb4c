"""A meta tensor has nothing to move."""

from __future__ import annotations

import pytest


def test_moving_it_raises(shown) -> None:
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        shown("meta-tensor-used", "Bad").build()


def test_memory_and_values_make_it_usable(shown) -> None:
    shown("meta-tensor-used", "Good").build()
