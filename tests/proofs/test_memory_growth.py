"""Kept features grow by a megabyte per step; the same mean needs 256 bytes."""

from __future__ import annotations

import pytest
import torch


def bytes_kept(trainer) -> int:
    """Of all tensors that the trainer holds besides its model."""
    held = [item for value in vars(trainer).values() for item in (value if isinstance(value, list) else [value])]
    return sum(item.nbytes for item in held if isinstance(item, torch.Tensor))


@pytest.mark.parametrize(("section", "per_step"), [("Bad", 4096 * 64 * 4), ("Good", 0)])
def test_what_is_kept_grows_with_the_steps(shown, section: str, per_step: int) -> None:
    few, more = (bytes_kept(shown("memory-growth", section).train(steps)) for steps in (3, 8))
    assert more - few == 5 * per_step


def test_the_statistic_is_the_same(shown) -> None:
    means = []
    for section in ("Bad", "Good"):
        torch.manual_seed(0)
        means.append(shown("memory-growth", section).train(5).mean())
    torch.testing.assert_close(*means, rtol=1e-4, atol=1e-6)
