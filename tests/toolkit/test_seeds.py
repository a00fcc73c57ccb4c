"""seed_everything: the same numbers again from all that a run draws from."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, WeightedRandomSampler

from torchtriage.core.errors import TriageError
from torchtriage.toolkit import seed_everything


def drawn(*others: Any) -> list[Any]:
    seed_everything(5, *others)
    return [random.random(), np.random.rand(), torch.rand(2).tolist()]


def test_python_numpy_and_torch_draw_the_same_again() -> None:
    assert drawn() == drawn()
    assert seed_everything(5) == ["python", "torch", "numpy"]


def test_generators_of_loaders_and_samplers_are_seeded_each_with_its_own() -> None:
    loader = DataLoader(torch.arange(40), shuffle=True, generator=torch.Generator())
    weighted = WeightedRandomSampler([1.0] * 40, 40, generator=torch.Generator())
    others = (loader, weighted, random.Random(), np.random.default_rng())

    def orders() -> tuple[list[int], list[int], float, float]:
        seed_everything(5, *others)
        return [int(each) for each in loader], list(weighted), others[2].random(), others[3].random()

    first = orders()
    assert orders() == first
    assert loader.generator.initial_seed() != weighted.generator.initial_seed()


def test_what_has_no_generator_is_told() -> None:
    with pytest.raises(TriageError, match="argument 1, a DataLoader, has no generator"):
        seed_everything(5, DataLoader(torch.arange(4)))


@pytest.mark.parametrize("seed", [-1, 2**32])
def test_a_seed_that_numpy_does_not_take_is_told(seed: int) -> None:
    with pytest.raises(TriageError, match="is not within 0 and"):
        seed_everything(seed)


def test_deterministic_kernels_are_asked_for_before_anything_runs() -> None:
    script = (
        "import os, torch\nfrom torchtriage.toolkit import seed_everything\nseed_everything(1, deterministic=True)\n"
        "print(torch.are_deterministic_algorithms_enabled(), os.environ['CUBLAS_WORKSPACE_CONFIG'])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=250)
    assert done.stdout == "True :4096:8\n"


def test_a_seed_of_numpy_is_the_number_and_what_is_no_whole_number_is_refused() -> None:
    seed_everything(np.int64(3))  # type: ignore[arg-type]
    drawn = torch.rand(2)
    seed_everything(3)
    assert torch.equal(drawn, torch.rand(2))
    for seed in (1.5, "3", None):
        with pytest.raises(TriageError, match="is no whole number"):
            seed_everything(seed)  # type: ignore[arg-type]
