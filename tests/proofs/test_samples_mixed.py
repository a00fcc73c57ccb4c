"""An LSTM that takes samples for time answers otherwise when they come one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from experimented import said, tried


def change(model: torch.nn.Module) -> float:
    """By how much the answers to new samples change when they come one by one, as a share of their spread."""
    x = torch.randn(256, 4, 8, generator=torch.Generator().manual_seed(1))
    model.eval()
    with torch.no_grad():
        together, alone = model(x), torch.cat([model(each) for each in x.split(1)])
    return float((together - alone).abs().mean() / together.std())


def test_without_batch_first_an_answer_depends_on_the_other_samples(shown) -> None:
    assert change(shown("samples-mixed", "Bad").train()) > 0.2


def test_with_batch_first_it_does_not(shown) -> None:
    assert change(shown("samples-mixed", "Good").train()) < 0.001


@pytest.mark.parametrize(("section", "expected"), [("Bad", {"trial/samples-mixed"}), ("Good", set())])
def test_an_experiment_tells_bad_from_good(section: str, expected: set[str], shown, tmp_path: Path) -> None:
    found = said(tried(tmp_path, shown("samples-mixed", section).train, frozenset(("sanity",))))
    assert set(found) == expected
