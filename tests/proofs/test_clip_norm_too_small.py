"""An update that is clipped to next to nothing moves next to nothing."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest
from experimented import said, tried


def test_clipped_far_below_their_norm_gradients_move_nothing(shown) -> None:
    losses = shown("clip-norm-too-small", "Bad").train()
    assert mean(losses[-32:]) > 0.9 * mean(losses[:8])


def test_clipped_near_their_norm_they_do(shown) -> None:
    losses = shown("clip-norm-too-small", "Good").train()
    assert mean(losses[-32:]) < losses[0] / 2


@pytest.mark.parametrize(("section", "expected"), [("Bad", True), ("Good", False)])
def test_an_experiment_tells_bad_from_good(section: str, expected: bool, shown, tmp_path: Path) -> None:
    found = said(tried(tmp_path, shown("clip-norm-too-small", section).train, frozenset(("stability",))))
    assert ("trial/clip-norm-too-small" in found) is expected
