"""Sketches of passes: the same for the same samples in any order, and another for others."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from torchtriage.specialists.distributed_training_strategies.probes._sketch import KEPT, Sketch

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64]


def samples(count: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    made = torch.randn(count, 3, 24, generator=torch.Generator().manual_seed(seed))
    return (made > 0) if dtype == torch.bool else (made * 40).to(dtype)


def sketch(data: torch.Tensor, size: int) -> list[int]:
    found = Sketch()
    for batch in data.split(size):
        found.add({"image": batch, "label": batch[:, 0, 0]})
    assert found.samples == len(data)
    return found.marks()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 40), st.integers(1, 40))
def test_order_and_size_of_batches_do_not_matter(seed: int, one: int, other: int) -> None:
    data = samples(200)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(seed))
    assert sketch(data, one) == sketch(data[order], other)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_samples_of_any_type_have_marks_of_their_own(dtype: torch.dtype) -> None:
    one, other = sketch(samples(500, 1, dtype), 20), sketch(samples(500, 2, dtype), 20)
    assert len(one) == KEPT == len(set(one))
    assert not set(one) & set(other)


def test_marks_are_spread_so_that_their_density_tells_how_many_differ() -> None:
    kept = sketch(samples(5000), 100)
    assert KEPT * 2**62 / kept[-1] == pytest.approx(5000, rel=0.25)


@pytest.mark.parametrize(
    "batch", [[], ["a", "b"], torch.ones(4), {"x": torch.ones(())}, (), torch.zeros(4, 0)], ids=repr
)
def test_batches_without_a_row_for_each_sample_have_no_sketch(batch: object) -> None:
    found = Sketch()
    found.add(batch)
    assert found.off
    assert found.marks() == []
