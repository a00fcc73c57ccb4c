"""An operation without a deterministic form raises when that is asked for; another way to write it does not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

ARGUMENTS = (torch.zeros(4), torch.tensor([1, 2]), torch.ones(2))


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    yield
    torch.use_deterministic_algorithms(False)


def test_put_has_none(shown) -> None:
    with pytest.raises(RuntimeError, match="put_ does not have a deterministic implementation"):
        shown("deterministic-refused", "Bad").update(*ARGUMENTS)


def test_an_assignment_through_an_index_has_one(shown) -> None:
    assert shown("deterministic-refused", "Good").update(*ARGUMENTS).tolist() == [0, 1, 1, 0]
