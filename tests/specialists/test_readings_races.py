"""What is said of memory that is used before a copy has ended, of events made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from records import Events, evidence, found

from torchtriage.specialists.tensor_operations_and_memory.readings import races

COPY = ("train.py", 12, "to")
READ = (*COPY, "host", "train.py", 14, "item", 1)


def copy_races(*rows: Any, at: int = 5) -> dict[str, Any]:
    return {"kind": "copy-races", "step": at, "at": at, "races": rows}


def stream_uses(*seconds: float, at: int = 5) -> dict[str, Any]:
    return {"kind": "stream-uses", "step": at, "at": at, "uses": [(*COPY, each) for each in seconds]}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        pytest.param(READ, "item() used the result of to(non_blocking=True) to the host in line 12", id="read"),
        pytest.param(
            (*COPY, "host", "metrics.py", 3, "numpy", 1),
            "an array of numpy() used the result of to(non_blocking=True) to the host in train.py:12",
            id="in another file, by an array",
        ),
        pytest.param((*COPY, "host", "train.py", 14, "save", 1), "torch.save() used the result of to(", id="saved"),
        pytest.param(
            (*COPY, "device", "train.py", 14, "copy_", 2),
            "copy_() overwrote pinned memory before to(non_blocking=True) to the device in line 12 had read it",
            id="overwritten",
        ),
        pytest.param((*COPY, "device", "train.py", 14, "__setitem__", 1), "[...] = overwrote pinned", id="assigned to"),
        pytest.param((*COPY, "device", "train.py", 14, "zero_", 1), "zero_() overwrote pinned", id="cleared"),
        pytest.param((*COPY, "host", "train.py", 14, "__gt__", 1), "> used the result", id="compared"),
        pytest.param((*COPY, "host", "train.py", 14, "__float__", 1), "float() used the result", id="converted"),
    ],
)
def test_a_race_is_told_at_the_line_that_used_the_memory(row: Any, said: str) -> None:
    (item,) = evidence(races.non_blocking_race, [copy_races(row), copy_races(row, at=6)])
    assert (item.place.path, item.place.line, item.value) == (row[4], row[5], 2)
    assert item.fact.startswith(said)
    assert item.fact.endswith("in 2 steps, the first of them 5")


def test_each_pair_of_lines_is_one_race() -> None:
    other = (*COPY, "host", "train.py", 15, "item", 1)
    assert len(evidence(races.non_blocking_race, [copy_races(READ, other), copy_races(READ, at=6)])) == 2


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([stream_uses(0.002), stream_uses(0.0, at=6)], {"stream-not-waited"}, id="in one step of two"),
        pytest.param([stream_uses(0.0), stream_uses(0.0, at=6)], set(), id="the copies had ended"),
        pytest.param([stream_uses(5e-7)], set(), id="by less than events can tell"),
        pytest.param([], set(), id="one stream"),
    ],
)
def test_a_pass_that_begins_before_its_copy_has_ended_is_enough(events: Events, slugs: set[str]) -> None:
    assert found(races.stream_not_waited, events) == slugs


def test_how_often_and_how_much_too_early_a_pass_began_is_told() -> None:
    (item,) = evidence(
        races.stream_not_waited, [stream_uses(0.002), stream_uses(0.004, 0.0, at=6), stream_uses(0.0, at=7)]
    )
    assert (item.place.path, item.place.line, item.place.step, item.value) == ("train.py", 12, 5, 2)
    assert "in 2 of 3 steps the device began the forward pass that is given the copy 3 ms before" in item.fact
