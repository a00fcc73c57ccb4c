"""The figures of two runs, from measurements made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from torchtriage.diagnose.pace import Change, runs


def run(median: Any = 0.2, interval: Any = None, steps: Any = 100, **setup: Any) -> dict[str, Any]:
    return {"step_time": {"median": median, "interval": interval}, "steps": steps, "setup": setup}


def test_a_faster_step_is_told_with_what_the_factor_is_at_least_and_at_most() -> None:
    timing = runs(run(0.2, [0.18, 0.24]), run(0.1, [0.08, 0.12])).timing
    assert timing is not None
    assert (timing.change, timing.faster) == (Change.SMALLER, 2.0)
    assert timing.faster_interval == pytest.approx((1.5, 3.0))


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (run(0.2, [0.19, 0.21]), run(0.18, [0.17, 0.185]), Change.SMALLER),
        (run(0.2, [0.19, 0.21]), run(0.19, [0.18, 0.20]), Change.SAME),
        (run(0.1, [0.09, 0.11]), run(0.2, [0.19, 0.21]), Change.LARGER),
        (run(0.2), run(0.17), Change.SMALLER),
        (run(0.2), run(0.19), Change.SAME),
        (run(0.2, [0.3, 0.4]), run(0.19), Change.SAME),  # an interval beside its median is none
        (run(0.2, "text"), run(0.1, [None, 0.2]), Change.SMALLER),
    ],
)
def test_step_times_differ_where_their_intervals_do_not_meet(before: Any, after: Any, change: Change) -> None:
    timing = runs(before, after).timing
    assert timing is not None
    assert timing.change is change


def test_a_time_of_nothing_has_no_interval_for_the_factor() -> None:
    timing = runs(run(0.2, [0.1, 0.3]), run(0.1, [0.0, 0.1])).timing
    assert timing is not None
    assert timing.faster_interval is None


@pytest.mark.parametrize(
    ("before", "after", "usual"),
    [
        ((0.1, 0.3), (0.05, 0.15), True),
        ((0.1, 0.3), (0.05, 0.1), True),
        ((0.19, 0.3), (0.09, 0.15), False),
        ((0.05, 0.15), (0.19, 0.3), False),
        ((None, 0.3), (0.1, 0.2), False),
        ((0.1, 0.3), (0.1, "text"), False),
    ],
)
def test_a_difference_may_be_one_that_steps_of_one_run_have(before: Any, after: Any, usual: bool) -> None:
    one, two = ({"step_time": {"median": 0.1, "p10": low, "p90": high}} for low, high in (before, after))
    timing = runs(one, two).timing
    assert timing is not None
    assert timing.usual is usual


@pytest.mark.parametrize("median", [0, -1.0, "nan", "inf"])
def test_a_time_that_is_none_is_not_compared(median: Any) -> None:
    assert runs(run(median), run(0.1)).timing is None
    assert runs(run(0.1), run(median)).timing is None


@pytest.mark.parametrize(
    ("before", "after", "doubts", "alike"),
    [
        (run(), run(), [], True),
        ({}, run(), [("measurements", "none", "a run's")], False),
        (run(), {}, [("measurements", "a run's", "none")], False),
        ({"files": 3}, {"files": 3}, [("measurements", "none", "none")], False),
        (run(steps=100), run(steps=95), [], True),
        (run(steps=100), run(steps=65), [("steps", "100", "65")], True),
        (run(steps=None), run(steps=65), [], True),
        (run(steps=100), run(steps="text"), [], True),
        (run(parameters={"float32": 9}), run(parameters={"bfloat16": 9}), [], True),
        (run(parameters={"float32": 9}), run(parameters={"float32": 8}), [("parameters", "9", "8")], False),
        (run(parameters={"float32": 9}), run(parameters={}), [], True),
        (run(parameters="text"), run(parameters={"float32": 9}), [], True),
        (run(batch=[{"shape": [8, 137]}]), run(batch=[{"shape": [8, 99]}]), [], True),
        (run(batch=[{"shape": [8, 3]}]), run(batch=[{"shape": [16, 3]}]), [("batch", "8", "16")], False),
        (run(batch=[{"shape": []}]), run(batch=[{"shape": [16]}]), [], True),
        (run(batch=[]), run(batch=[{"shape": [16]}]), [], True),
        (run(devices=[{"name": "A"}]), run(devices=[{"name": "B"}]), [("devices", "A", "B")], False),
        (run(devices=[]), run(devices=[{"name": "B"}]), [], True),
        (run(devices="cpu"), run(devices=[{"name": "B"}]), [], True),
        (run(cpus=2), run(cpus=8), [("cpus", "2", "8")], False),
        (run(world_size=1), run(world_size=2), [("world_size", "1", "2")], False),
        (run(world_size=None), run(world_size=2), [], True),
    ],
)
def test_what_bars_a_comparison_is_said(before: Any, after: Any, doubts: list[Any], alike: bool) -> None:
    told = runs(before, after)
    assert [(doubt.what, doubt.before, doubt.after) for doubt in told.doubts] == doubts
    assert told.alike is alike


def test_times_of_unlike_runs_are_shown_and_not_compared() -> None:
    timing = runs(run(0.2, [0.1, 0.3], cpus=2), run(0.1, [0.1, 0.1], cpus=4)).timing
    assert timing is not None
    assert (timing.before, timing.after, timing.after_interval) == (0.2, 0.1, (0.1, 0.1))
    assert (timing.change, timing.faster, timing.faster_interval) == (None, None, None)


def test_shares_and_memory_stand_side_by_side_as_far_as_they_were_measured() -> None:
    rss = {"first": 1.0, "last": 3.0, "highest": 4.0}
    before = {**run(), "shares": {"data": 0.5, "forward": "text"}, "memory": {"rss": rss, "allocated": None, "peak": 9}}
    after = {**run(), "shares": {"idle": 0.25, "data": 0.125}, "memory": {"rss": {"highest": 5}}}
    told = runs(before, after)
    assert told.shares == {"data": (0.5, 0.125), "idle": (None, 0.25)}
    assert told.memory == {"rss": (4.0, 5.0), "peak": (9.0, None)}
    assert runs(run(), {**run(), "shares": 3, "memory": []}).shares == {}


QUARTERS = {"data": 0.25, "forward": 0.25, "backward": 0.25, "optimizer": 0.24, "idle": 0.01}


@pytest.mark.parametrize(
    ("median", "shares", "doubted"),
    [
        (0.8, QUARTERS, True),  # all four times as long
        (0.05, QUARTERS, True),  # all a quarter
        (0.8, {**QUARTERS, "data": 0.2, "forward": 0.29, "idle": 0.02}, True),  # nearly all
        (0.2, QUARTERS, False),  # nothing has changed
        (0.215, QUARTERS, False),  # within the margin
        (0.8, {**QUARTERS, "data": 0.67, "forward": 0.11, "backward": 0.11, "optimizer": 0.1}, False),  # data alone
        (0.8, {"data": 0.5, "forward": 0.5}, False),  # too few to tell
        (0.8, {"data": 0.98, "forward": 0.01, "backward": 0.01}, False),
        (None, QUARTERS, False),
    ],
)
def test_a_change_that_all_phases_share_may_be_the_machine(median: Any, shares: Any, doubted: bool) -> None:
    told = runs({**run(0.2), "shares": QUARTERS}, {**run(median), "shares": shares})
    assert ("load" in [doubt.what for doubt in told.doubts]) is doubted
    assert told.alike is (median is not None)


@pytest.mark.parametrize("median", [0, "nan", "inf", -1])
def test_no_load_is_told_from_times_that_are_none(median: Any) -> None:
    for pair in ((0.2, median), (median, 0.2)):
        one, two = ({**run(each), "shares": QUARTERS} for each in pair)
        assert [doubt.what for doubt in runs(one, two).doubts] == []
