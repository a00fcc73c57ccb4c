"""An output behind a ReLU that is dead from the start never moves."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest
from experimented import said, tried


def test_behind_a_dead_relu_each_epoch_costs_the_same(shown) -> None:
    losses = shown("cannot-overfit-one-batch", "Bad").train()
    assert mean(losses[-32:]) == pytest.approx(mean(losses[:32]), rel=1e-6)


def test_behind_a_softplus_the_loss_falls(shown) -> None:
    losses = shown("cannot-overfit-one-batch", "Good").train()
    assert mean(losses[-32:]) < losses[0] / 5


@pytest.mark.parametrize(("section", "expected"), [("Bad", {"trial/cannot-overfit-one-batch"}), ("Good", set())])
def test_an_experiment_tells_bad_from_good(section: str, expected: set[str], shown, tmp_path: Path) -> None:
    found = said(tried(tmp_path, shown("cannot-overfit-one-batch", section).train, frozenset(("sanity",))))
    assert set(found) == expected
