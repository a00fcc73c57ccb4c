"""A file of which no key fits is loaded without a word, unless somebody looks."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn


@pytest.fixture
def file(tmp_path: Path) -> Path:
    state = {f"module.{key}": value for key, value in nn.Linear(2, 1).state_dict().items()}
    torch.save(state, tmp_path / "model.pt")
    return tmp_path / "model.pt"


def test_nothing_is_loaded_and_nothing_is_said(shown, file: Path) -> None:
    model = nn.Linear(2, 1)
    before = model.weight.clone()
    shown("mismatch-swallowed", "Bad").load(model, file)
    assert torch.equal(model.weight, before)


def test_who_looks_hears_of_it(shown, file: Path) -> None:
    with pytest.raises(RuntimeError, match=r"missing \['weight', 'bias'\]"):
        shown("mismatch-swallowed", "Good").load(nn.Linear(2, 1), file)


def test_shapes_that_differ_raise_all_the_same() -> None:
    with pytest.raises(RuntimeError, match="size mismatch"):
        nn.Linear(2, 1).load_state_dict(nn.Linear(3, 1).state_dict(), strict=False)
