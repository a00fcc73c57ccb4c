"""What the readings of distributed training say of events made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from records import evidence, found, steps

from torchtriage.specialists.distributed_training_strategies.readings import samplers

ORDER = {
    "kind": "order", "step": 60, "path": "t.py", "line": 9, "again": 2, "changed": 0, "epoch": 0, "length": 50,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"sampler-epoch-not-set"}, id="three epochs alike"),
        pytest.param({"again": 1}, {"sampler-epoch-not-set"}, id="two epochs alike"),
        pytest.param({"changed": 1}, set(), id="told the epoch, one too late"),
    ],
)
def test_epochs_in_the_same_order(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(samplers.sampler_epoch_not_set, [*steps(60), {**ORDER, **change}]) == slugs


def test_the_last_word_on_a_sampler_counts() -> None:
    (item,) = evidence(samplers.sampler_epoch_not_set, [*steps(60), {**ORDER, "again": 1}, ORDER])
    assert (item.value, item.place.line) == (3.0, 9)
    assert "the same 50 indices in the same order" in item.fact
