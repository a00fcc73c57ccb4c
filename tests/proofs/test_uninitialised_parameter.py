"""What torch.empty leaves in a parameter is made visible by deterministic mode."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def _deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("section", ["Bad", "Good"])
def test_memory_that_nobody_filled_reaches_the_output(shown, section: str) -> None:
    assert torch.utils.deterministic.fill_uninitialized_memory
    model = shown("uninitialised-parameter", section).Project(4, 3)
    assert model(torch.ones(1, 4)).isnan().all().item() == (section == "Bad")
