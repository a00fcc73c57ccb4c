"""What torch's seed does not reach differs between two runs that start from different states."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch


@pytest.mark.parametrize(("section", "same"), [("Bad", False), ("Good", True)])
def test_two_processes_end_at_the_same_weights(shown, section: str, same: bool) -> None:
    main = shown("seeds-incomplete", section).main
    ends = []
    for entropy in (1, 2):  # what a fresh process takes from the operating system
        random.seed(entropy)
        ends.append(main(list(range(10)), seed=0))
    assert torch.equal(*ends) == same


def test_one_seed_does_nothing_for_the_others() -> None:
    def drawn() -> tuple[float, float]:
        torch.manual_seed(0)
        return random.random(), float(np.random.rand())

    assert drawn() != drawn()
