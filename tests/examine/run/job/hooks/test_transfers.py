"""Which memory tensors have in common, and which tensors stand in what a call is given."""

from __future__ import annotations

import gc
from collections.abc import Callable

import pytest
import torch

from torchtriage.examine.run.job.hooks.transfers import region_of, tensors_in

MADE = torch.arange(24).view(4, 6)
Part = Callable[[torch.Tensor], torch.Tensor]


@pytest.mark.parametrize(
    ("one", "other", "meets"),
    [
        pytest.param(lambda x: x, lambda x: x, True, id="the same"),
        pytest.param(lambda x: x.view(-1), lambda x: x[2], True, id="a row"),
        pytest.param(lambda x: x[1], lambda x: x[2], False, id="two rows"),
        pytest.param(lambda x: x[:2], lambda x: x[1:], True, id="a row in both"),
        pytest.param(lambda x: x, lambda x: x[:, 1], True, id="a column"),
        pytest.param(lambda x: x[0], lambda x: x[:, 1], True, id="a column that begins in the row"),
        pytest.param(lambda x: x[1], lambda x: x[:, 1], False, id="a column that crosses the row, which is not known"),
        pytest.param(lambda x: x.view(torch.int32)[0, :2], lambda x: x[0, 0], True, id="in another type"),
        pytest.param(lambda x: x.view(torch.int32)[0, 2:], lambda x: x[0, 0], False, id="beside it, in another type"),
        pytest.param(lambda x: x, lambda x: x.clone(), False, id="a copy"),
    ],
)
def test_tensors_meet_where_they_surely_have_bytes_in_common(one: Part, other: Part, meets: bool) -> None:
    first, second = one(MADE), other(MADE)
    regions = region_of(first), region_of(second)
    assert regions[0] is not None
    assert regions[1] is not None
    assert regions[0].meets(regions[1]) == regions[1].meets(regions[0]) == meets


def test_memory_is_gone_with_its_last_tensor() -> None:
    tensor = torch.ones(3)
    region, row = region_of(tensor), tensor[1:]
    assert region is not None
    del tensor
    gc.collect()
    assert not region.is_gone
    del row
    gc.collect()
    assert region.is_gone


@pytest.mark.parametrize("tensor", [torch.ones(0), torch.ones(2).to_sparse()], ids=["nothing", "sparse"])
def test_what_has_no_memory_of_its_own_has_no_part_of_one(tensor: torch.Tensor) -> None:
    assert region_of(tensor) is None


def test_tensors_are_found_in_containers() -> None:
    first, second, third = torch.ones(1), torch.nn.Parameter(torch.ones(1)), torch.ones(1)
    given = ([first, "text", 3], {"labels": (second, None)}, third, torch.ones(2).to_sparse())
    found = list(tensors_in(given))
    assert [id(each) for each in found] == [id(first), id(second), id(third)]
