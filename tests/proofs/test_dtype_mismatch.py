"""A matrix product wants both operands in one type."""

from __future__ import annotations

import pytest
import torch


def test_half_a_model_raises_at_its_first_batch(shown) -> None:
    with pytest.raises(RuntimeError, match="must have the same dtype"):
        shown("dtype-mismatch", "Bad").train()


def test_autocast_around_a_model_in_float32_trains(shown) -> None:
    shown("dtype-mismatch", "Good").train()


def test_sums_of_elements_promote() -> None:
    assert (torch.ones(2) + torch.ones(2, dtype=torch.bfloat16)).dtype == torch.float32
