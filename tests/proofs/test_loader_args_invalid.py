"""Arguments that exclude each other make DataLoader raise."""

from __future__ import annotations

import pytest
from torch.utils.data import DataLoader, SequentialSampler

DATA = list(range(8))


def test_a_loader_without_workers_cannot_keep_them(shown) -> None:
    with pytest.raises(ValueError, match="persistent_workers option needs num_workers > 0"):
        shown("loader-args-invalid", "Bad").loader(DATA)
    assert shown("loader-args-invalid", "Good").loader(DATA).num_workers == 2


@pytest.mark.parametrize(
    "arguments",
    [
        {"prefetch_factor": 2},
        {"shuffle": True, "sampler": SequentialSampler(DATA)},
        {"batch_sampler": [[0]], "batch_size": 4},
        {"batch_sampler": [[0]], "shuffle": True},
        {"batch_sampler": [[0]], "drop_last": True},
    ],
)
def test_the_other_contradictions_raise_as_well(arguments: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"mutually exclusive|multiprocessing"):
        DataLoader(DATA, **arguments)


def test_what_the_defaults_say_is_no_contradiction() -> None:
    assert len(DataLoader(DATA, batch_sampler=[[0], [1]], batch_size=1)) == 2
    assert len(DataLoader(DATA, persistent_workers=False, prefetch_factor=None)) == 8
