"""What a Dataset stores in itself grows with every epoch, or is full after the first."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest


def kept(points) -> int:
    """Bytes of the samples that the dataset holds."""
    served = points.served.values() if isinstance(points.served, dict) else points.served
    return sum(sample.nbytes for sample in served if isinstance(sample, np.ndarray))


@pytest.mark.parametrize(("section", "each"), [("Bad", 32 * 262_144), ("Good", 0)])
def test_the_bytes_that_an_epoch_leaves_behind(shown, section: str, each: int) -> None:
    points = shown("host-memory-growth", section).Points()
    sizes = []
    for _ in range(3):
        for index in range(len(points)):
            points[index]
        sizes.append(kept(points))
    assert sizes[0] == 32 * 262_144
    assert [later - earlier for earlier, later in pairwise(sizes)] == [each, each]
