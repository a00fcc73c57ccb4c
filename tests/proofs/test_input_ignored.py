"""Bytes that are cast back after a division are all 0: the loss rests at that of a guess."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import mean

import pytest
from experimented import said, tried


def test_without_its_input_a_network_only_guesses(shown) -> None:
    assert mean(shown("input-ignored", "Bad").train()[-32:]) == pytest.approx(math.log(4), rel=0.02)


def test_divided_as_floats_it_learns(shown) -> None:
    assert mean(shown("input-ignored", "Good").train()[-32:]) < 0.6


@pytest.mark.parametrize(("section", "expected"), [("Bad", {"trial/input-ignored"}), ("Good", set())])
def test_an_experiment_tells_bad_from_good(section: str, expected: set[str], shown, tmp_path: Path) -> None:
    found = said(tried(tmp_path, shown("input-ignored", section).train, frozenset(("sanity",))))
    assert set(found) == expected
