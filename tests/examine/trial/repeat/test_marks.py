"""Marks of tensors: equal bits give equal marks, all else gives others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from torchtriage.examine.trial.repeat.job import _digest
from torchtriage.examine.trial.repeat.job._digest import mark

SIZES = [1, 7, 500, 8192, 8193, 60_001, 200_000]


@pytest.fixture(autouse=True)
def prepared() -> None:
    _digest.prepare()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.uint8])
def test_equal_bits_have_equal_marks_wherever_they_lie(size: int, dtype: torch.dtype) -> None:
    tensor = (torch.randn(size, generator=torch.Generator().manual_seed(size)) * 50).to(dtype)
    again = torch.zeros(size + 1, dtype=dtype)
    again[1:] = tensor
    assert mark(tensor) == mark(tensor.clone()) == mark(again[1:].clone())
    assert type(mark(tensor)) is int


@pytest.mark.parametrize("size", [500, 60_001, 200_000])
@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(lambda t: -t, id="another sign"),
        pytest.param(lambda t: t.flip(0), id="back to front"),
        pytest.param(lambda t: t.roll(1), id="one place further"),
        pytest.param(lambda t: t.roll(2 * _digest.ROW), id="one row of the sums further"),
        pytest.param(lambda t: torch.cat([t[3:4], t[1:3], t[:1], t[4:]]), id="two exchanged"),
        pytest.param(lambda t: torch.cat([t[:-1], -t[-1:]]), id="the sign of the last"),
        pytest.param(lambda t: torch.cat([-t[:2], t[2:]]), id="the signs of two neighbours"),
        pytest.param(lambda t: torch.nextafter(t, torch.tensor(9.0)), id="the last bit of each"),
        pytest.param(lambda t: torch.cat([torch.nextafter(t[:1], torch.tensor(9.0)), t[1:]]), id="the last bit of one"),
    ],
)
def test_order_sign_and_the_last_bit_are_seen(size: int, changed: Callable[[torch.Tensor], torch.Tensor]) -> None:
    tensor = torch.randn(size, generator=torch.Generator().manual_seed(1))
    assert mark(tensor) != mark(changed(tensor))


def test_samples_of_one_hot_rows_that_change_places_are_seen() -> None:
    labels = torch.randint(0, 1000, (256,), generator=torch.Generator().manual_seed(0))
    rows = torch.nn.functional.one_hot(labels, 1000).float()
    assert mark(rows) != mark(rows[torch.randperm(256, generator=torch.Generator().manual_seed(1))])
    swapped = rows.clone()
    swapped[[3, 200]] = rows[[200, 3]]
    assert mark(rows) != mark(swapped)


def test_what_is_laid_out_otherwise_has_the_mark_of_its_numbers() -> None:
    tensor = torch.randn(300, 400)
    assert mark(tensor.t()) == mark(tensor.t().contiguous())
    assert mark(tensor.to_sparse()) == mark(tensor[tensor != 0])
    assert mark(torch.complex(tensor, tensor)) != mark(torch.complex(tensor, -tensor))
    assert mark(torch.nn.Parameter(tensor)) == mark(tensor)


def test_what_has_no_numbers_has_no_mark() -> None:
    assert mark(torch.empty(3, device="meta")) is None
    assert mark(torch.zeros(3, 0)) == 0


def test_a_mark_draws_nothing_and_is_seen_by_no_mode() -> None:
    from torch.utils.flop_counter import FlopCounterMode

    state = torch.get_rng_state()
    with FlopCounterMode(display=False) as counter:
        assert mark(torch.ones(50_000)) is not None
    assert counter.get_total_flops() == 0
    assert torch.equal(state, torch.get_rng_state())
