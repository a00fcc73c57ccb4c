"""A collective needs a process group; code that asks for one runs without."""

from __future__ import annotations

import pytest
import torch


def test_a_collective_without_a_group_raises(shown) -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        shown("process-group-misused", "Bad").mean_loss(torch.ones(1))


def test_one_process_needs_none(shown) -> None:
    assert shown("process-group-misused", "Good").mean_loss(torch.ones(1)).item() == 1
