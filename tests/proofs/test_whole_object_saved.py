"""A module that is saved whole is refused by the default of torch.load; its state is not."""

from __future__ import annotations

import argparse
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch


def test_a_whole_module_is_refused(shown, tmp_path: Path) -> None:
    shown("whole-object-saved", "Bad").save(tmp_path / "model.pt")
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        torch.load(tmp_path / "model.pt")


def test_a_state_is_read(shown, tmp_path: Path) -> None:
    model = shown("whole-object-saved", "Good").save(tmp_path / "model.pt")
    assert torch.equal(torch.load(tmp_path / "model.pt")["0.weight"], model[0].weight)


@pytest.mark.parametrize("entry", [argparse.Namespace(lr=0.1), np.random.get_state()])
def test_one_object_makes_the_whole_file_unreadable(entry: object, tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(2), "more": entry}, tmp_path / "model.pt")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "model.pt")
