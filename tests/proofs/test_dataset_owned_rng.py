"""Workers hold copies of the dataset's generator: they draw the same numbers, epoch after epoch."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize(("section", "different"), [("Bad", 4), ("Good", 16)])
def test_so_many_of_16_draws_are_different(shown, section: str, different: int) -> None:
    torch.manual_seed(0)
    loader = shown("dataset-owned-rng", section).loader(torch.zeros(8, dtype=torch.float64))
    drawn = torch.cat([batch for _ in range(2) for batch in loader])
    assert len(drawn) == 16
    assert len(set(drawn.tolist())) == different
