"""The wrapper's keys have a prefix that the bare model's keys have not."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import torch
from torch import nn


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which backend compiles does not matter for the keys; this one needs no compiler."""
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))


def test_the_first_resume_fails(shown, tmp_path: Path) -> None:
    train, path = shown("keys-mismatched", "Bad").train, str(tmp_path / "model.pt")
    train([], path)
    assert list(torch.load(path)) == ["_orig_mod.weight", "_orig_mod.bias"]
    with pytest.raises(RuntimeError, match=r"Missing key\(s\) in state_dict: \"weight\", \"bias\""):
        train([], path)


def test_the_bare_state_fits(shown, tmp_path: Path) -> None:
    train, path = shown("keys-mismatched", "Good").train, str(tmp_path / "model.pt")
    first, second = train([], path), train([], path)
    assert torch.equal(first.weight, second.weight)


def test_loaded_with_strict_off_nothing_is_loaded_and_compile_in_place_changes_no_key() -> None:
    model, other = nn.Linear(2, 1), nn.Linear(2, 1)
    before = other.weight.clone()
    result = other.load_state_dict(nn.DataParallel(model).state_dict(), strict=False)
    assert torch.equal(other.weight, before)
    assert result.missing_keys == ["weight", "bias"]
    model.compile()
    assert list(model.state_dict()) == ["weight", "bias"]
