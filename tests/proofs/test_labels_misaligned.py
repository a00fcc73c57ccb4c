"""Labels that stand one row late leave the loss at that of a guess."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import mean

import pytest
from experimented import said, tried


def test_one_row_late_nothing_is_learned(shown) -> None:
    assert mean(shown("labels-misaligned", "Bad").train()[-64:]) == pytest.approx(math.log(4), rel=0.02)


def test_at_their_places_the_loss_falls(shown) -> None:
    assert mean(shown("labels-misaligned", "Good").train()[-64:]) < 0.2


@pytest.mark.parametrize(("section", "expected"), [("Bad", {"trial/labels-misaligned"}), ("Good", set())])
def test_an_experiment_tells_bad_from_good(section: str, expected: set[str], shown, tmp_path: Path) -> None:
    found = said(tried(tmp_path, shown("labels-misaligned", section).train, frozenset(("sanity",))))
    assert set(found) == expected
