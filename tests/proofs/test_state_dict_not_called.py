"""A method in the file is saved without complaint and refused when it is read; a loaded model is no model any more."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from torch import nn


def parts() -> tuple[nn.Module, torch.optim.Optimizer]:
    model = nn.Linear(3, 2)
    return model, torch.optim.Adam(model.parameters())


def test_a_method_is_saved_and_cannot_be_read(shown, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    shown("state-dict-not-called", "Bad").save(*parts(), path)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(path)


def test_a_state_is_saved_and_read(shown, tmp_path: Path) -> None:
    good, path = shown("state-dict-not-called", "Good"), tmp_path / "model.pt"
    model, optimizer = parts()
    good.save(model, optimizer, path)
    again = good.load(nn.Linear(3, 2), path)
    assert torch.equal(again.weight, model.weight)


def test_what_load_returns_is_no_model(shown, tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    shown("state-dict-not-called", "Good").save(*parts(), path)
    lost = shown("state-dict-not-called", "Bad").load(nn.Linear(3, 2), path)
    with pytest.raises(TypeError, match="'_IncompatibleKeys' object is not callable"):
        lost(torch.ones(1, 3))
    _, optimizer = parts()
    assert optimizer.load_state_dict(optimizer.state_dict()) is None


def test_a_path_is_no_state() -> None:
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'str'>"):
        nn.Linear(3, 2).load_state_dict("model.pt")
