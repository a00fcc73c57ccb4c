"""What is learned does not last where each update takes a large part of each weight."""

from __future__ import annotations

from math import log
from pathlib import Path
from statistics import mean

import pytest
from experimented import said, tried


def test_decay_keeps_the_loss_near_that_of_a_guess(shown) -> None:
    assert mean(shown("weight-decay-too-large", "Bad").train()[-32:]) > 0.75 * log(4)


def test_with_a_usual_decay_the_loss_falls(shown) -> None:
    assert mean(shown("weight-decay-too-large", "Good").train()[-32:]) < log(4) / 2


@pytest.mark.parametrize(("section", "expected"), [("Bad", True), ("Good", False)])
def test_an_experiment_tells_bad_from_good(section: str, expected: bool, shown, tmp_path: Path) -> None:
    found = said(tried(tmp_path, shown("weight-decay-too-large", section).train, frozenset(("stability",))))
    assert ("trial/weight-decay-too-large" in found) is expected
