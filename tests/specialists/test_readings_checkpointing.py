"""What the readings of checkpointing and reproducibility say of events made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from records import evidence, found, steps

from torchtriage.specialists.checkpointing_and_reproducibility.readings import streams

REPEATS = {
    "kind": "repeats", "step": 8, "dataset": "Lines", "workers": 2, "alike": 8, "kinds": 8, "values": 72,
    "path": "t.py", "line": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"iterable-not-sharded"}, id="every batch twice"),
        pytest.param({"alike": 3, "kinds": 3}, set(), id="three rounds"),
        pytest.param({"kinds": 2}, set(), id="data that hardly change"),
        pytest.param({"values": 4}, set(), id="so few values that chance may do it"),
    ],
)
def test_batches_of_workers_that_are_equal(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(streams.iterable_not_sharded, [*steps(40), {**REPEATS, **change}]) == slugs


def test_a_stream_is_named_once_with_its_line() -> None:
    (item,) = evidence(streams.iterable_not_sharded, [*steps(40), {**REPEATS, "alike": 4}, REPEATS])
    assert (item.value, item.place.line) == (2.0, 9)
    assert "8 times in succession the 2 workers of Lines delivered 2 equal batches" in item.fact
