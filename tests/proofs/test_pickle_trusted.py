"""A file runs code when it is loaded whole; the safe default refuses it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from torch import nn


class Program:
    """Unpickled, it makes a folder: a harmless stand-in for anything else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self):
        import os

        return os.mkdir, (str(self.folder),)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    torch.save({**nn.Linear(2, 1).state_dict(), "more": Program(tmp_path / "made")}, tmp_path / "model.pt")
    return tmp_path / "model.pt"


def test_the_code_in_the_file_is_run(shown, file: Path) -> None:
    with pytest.raises(RuntimeError, match="Unexpected key"):
        shown("pickle-trusted", "Bad").load(nn.Linear(2, 1), file)
    assert (file.parent / "made").is_dir()


def test_the_safe_default_refuses_it(shown, file: Path) -> None:
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        shown("pickle-trusted", "Good").load(nn.Linear(2, 1), file)
    assert not (file.parent / "made").exists()


def test_weights_load_either_way(shown, tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    torch.save(model.state_dict(), tmp_path / "model.pt")
    for section in ("Bad", "Good"):
        again = shown("pickle-trusted", section).load(nn.Linear(2, 1), tmp_path / "model.pt")
        assert torch.equal(again.weight, model.weight)
