"""An allocation larger than the memory of the host raises; the same work in parts does not."""

from __future__ import annotations

import pytest


def test_a_table_of_all_pairs_does_not_fit(shown) -> None:
    with pytest.raises(RuntimeError, match=r"DefaultCPUAllocator|not enough memory|allocate"):
        shown("host-out-of-memory", "Bad").distances()


def test_the_same_distances_row_by_row_fit(shown) -> None:
    shown("host-out-of-memory", "Good").distances()
