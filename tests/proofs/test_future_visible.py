"""Without a mask a model copies the next symbol, though a coin has decided it."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import mean

import pytest
from experimented import said, tried


def test_without_a_mask_the_toss_of_a_coin_is_predicted(shown) -> None:
    assert mean(shown("future-visible", "Bad").train()[-10:]) < 0.15


def test_with_a_mask_it_is_not(shown) -> None:
    losses = shown("future-visible", "Good").train()
    assert mean(losses[-10:]) < 0.8
    assert min(losses) > 0.6 < math.log(2)


@pytest.mark.parametrize(("section", "expected"), [("Bad", {"trial/future-visible"}), ("Good", set())])
def test_an_experiment_tells_bad_from_good(section: str, expected: set[str], shown, tmp_path: Path) -> None:
    found = said(tried(tmp_path, shown("future-visible", section).train, frozenset(("sanity",))))
    assert set(found) == expected
