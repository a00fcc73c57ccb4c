"""Memory snapshots in the report: the history as layers, and what was alive as a table."""

from __future__ import annotations

from typing import Any

import pytest

from torchtriage.core.case import Case
from torchtriage.report.html import render
from torchtriage.report.html.memory import SHOWN, memories
from torchtriage.report.html.seen import seen
from torchtriage.report.outline import Sight

MIB = 2**20


def device(**further: Any) -> dict[str, Any]:
    entries = [0.0, 10.0, 20.0]
    return {
        "file": "/data/oom.pickle", "device": 0, "entries": 30, "seconds": 2.0, "peak": 300 * MIB,
        "most_reserved": 400 * MIB, "row": 25, "failed": [],
        "timeline": {"entry": entries, "seconds": entries, "used": [MIB, 200 * MIB, 300 * MIB],
                     "reserved": [2 * MIB, 400 * MIB, 400 * MIB]},
        "layers": {"/job/model.py:31 (forward)": [0, 100 * MIB, 200 * MIB], "/job/train.py:20 (build)": [0, 50 * MIB, 50 * MIB]},
        "alive": [
            {"bytes": 120 * MIB, "blocks": 2, "at": "/job/model.py:31 (forward)"},
            {"bytes": 80 * MIB, "blocks": 3, "at": "/job/model.py:31 (forward)"},
            {"bytes": 50 * MIB, "blocks": 1, "at": "/job/train.py:20 (build)"},
        ],
        **further,
    }  # fmt: skip


def told(*devices: Any) -> dict[str, Any]:
    return {"snapshot": {"devices": list(devices)}}


def test_layers_add_up_to_what_is_in_use() -> None:
    (held,) = memories(told(device()))
    plot = held.plot
    assert plot is not None
    assert plot.columns == {
        "model.py:31 (forward)": (0.0, 100.0, 200.0), "train.py:20 (build)": (0.0, 50.0, 50.0),
        "everything else": (1.0, 50.0, 50.0), "reserved": (2.0, 400.0, 400.0),
    }  # fmt: skip
    assert (plot.unit, plot.axis, plot.lines, plot.steps) == ("MiB", "entry", ("reserved",), (0, 10, 20))
    assert [(mark.step, mark.label) for mark in plot.marks] == [(25, "peak")]
    assert plot.note == "30 entries of the recorded history of 2 s, the most in each of 3 parts."


def test_what_one_line_asked_for_is_one_row() -> None:
    (held,) = memories(told(device()))
    assert [(row.at, row.bytes, row.share, row.blocks) for row in held.alive] == [
        ("/job/model.py:31 (forward)", "200 MiB", "66.7 %", "5"),
        ("/job/train.py:20 (build)", "50 MiB", "16.7 %", "1"),
    ]
    assert held.when == "at the peak"


def test_a_failed_allocation_is_marked_and_told() -> None:
    failed = {"size": 64 * MIB, "stack": "/job/model.py:33 (forward)", "device_free": 8 * MIB, "used": 250 * MIB}
    (held,) = memories(told(device(failed=[failed])))
    assert held.words == (
        "At most 300 MiB were in use, 400 MiB reserved. 64 MiB could not be allocated at /job/model.py:33 (forward), "
        "with 8 MiB free on the device."
    )
    assert held.plot is not None
    assert [(mark.label, mark.tone) for mark in held.plot.marks] == [("64 MiB could not be allocated", "error")]
    assert held.alive[0].share == "80.0 %"
    assert held.when == "when the allocation failed"


def test_files_of_one_name_are_told_apart_by_their_paths() -> None:
    layers = {"/job/a/model.py:3 (f)": [1, 2, 3], "/job/b/model.py:3 (f)": [1, 2, 3]}
    (held,) = memories(told(device(layers=layers)))
    assert held.plot is not None
    assert list(held.plot.columns)[:2] == list(layers)


def test_without_a_history_the_table_stands_alone() -> None:
    empty = {"entry": [], "seconds": [], "used": [], "reserved": []}
    (held,) = memories(told(device(timeline=empty, layers={}, row=-1)))
    assert held.plot is None
    assert len(held.alive) == 2


@pytest.mark.parametrize(
    "broken",
    [
        {"timeline": {"entry": [0, "x", 2], "used": [1, 2, 3]}}, {"timeline": {"entry": [0, 1], "used": [1]}},
        {"timeline": 3}, {"timeline": None},
    ],
)  # fmt: skip
def test_a_timeline_that_does_not_fit_is_left_out(broken: dict[str, Any]) -> None:
    (held,) = memories(told(device(**broken)))
    assert held.plot is None


@pytest.mark.parametrize(
    "broken",
    [{"layers": 3}, {"layers": {"x": [1]}}, {"layers": {"x": None}}, {"alive": 7}, {"failed": {}}, {"row": None}],
)
def test_what_does_not_fit_does_not_take_the_rest_along(broken: dict[str, Any]) -> None:
    (held,) = memories(told(device(**broken)))
    assert held.plot is not None


@pytest.mark.parametrize("measurements", [{}, {"snapshot": 3}, told(), told(3, {"peak": "x"}), told({"peak": 0})])
def test_nothing_is_told_where_nothing_was_measured(measurements: dict[str, Any]) -> None:
    assert memories(measurements) == ()


def test_of_many_devices_those_that_held_most_are_drawn() -> None:
    many = [device(device=number, peak=(number + 1) * MIB) for number in range(SHOWN + 3)]
    assert [held.title for held in memories(told(*many))] == [
        f"Device {number}, oom.pickle" for number in range(3, SHOWN + 3)
    ]


def test_a_finding_of_memory_leads_to_the_plot() -> None:
    (held,) = memories(told(device()))
    assert held.plot is not None
    sight = Sight("x", "y", "z", "", None, "of what is in use are activations")
    assert seen(sight, [held.plot]) is held.plot


def test_hostile_names_stay_text() -> None:
    evil = '</script><script>alert(1)</script>" onload=x'
    page = render(
        Case(measurements=told(device(layers={evil: [1, 2, 3]}, alive=[{"bytes": 5, "blocks": 1, "at": evil}])))
    )
    assert "<script>alert" not in page
