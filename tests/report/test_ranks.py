"""Jobs of several ranks in the reports for people: side by side, standing still, drifting apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from torchtriage.core.case import Case
from torchtriage.report.formats import FORMATS, render
from torchtriage.report.hangs import hangs, ranges
from torchtriage.report.html.heat import divergence, heat
from torchtriage.report.html.seen import seen
from torchtriage.report.outline import Sight
from torchtriage.report.paper import Paper
from torchtriage.report.ranks import SHOWN, Side, side
from torchtriage.report.replicas import replicas

Row = dict[str, Any]
NAN, INF = float("nan"), float("inf")


def row(rank: int, **each: Any) -> Row:
    seconds = {"data": 0.01, "forward": 0.03, "backward": 0.05}
    return {"rank": rank, "steps": 40, "step_time": {"median": 0.1}, "seconds": seconds, "ended": "exit", **each}


def told(*rows: Any, **more: Any) -> Row:
    return {"ranks": {"world_size": len(rows), "each": list(rows), **more}}


def compared(*rows: Any, **more: Any) -> Side:
    found = side(told(*rows, **more))
    assert found is not None
    return found


def column(found: Side, name: str) -> tuple[str, ...]:
    return next((each.cells for each in found.columns if each.name == name), ())


@pytest.mark.parametrize("form", FORMATS)
def test_a_job_of_one_rank_says_nothing_of_ranks(form: str) -> None:
    alone = {"ranks": {"world_size": 1, "each": [row(0)]}}
    assert render(Case(measurements=alone), form).replace(str(alone), "") == render(Case(measurements=alone), form)
    if form not in {"json", "sarif"}:
        assert render(Case(measurements=alone), form) == render(Case(), form)


@pytest.mark.parametrize(
    ("differs", "words"),
    [
        (
            {"step": 0.0121, "data": 0.0119},
            "Rank 1 is 12.1 ms slower per step than rank 0, 11.9 ms of it in data.",
        ),
        ({"step": 0.0121}, "Rank 1 is 12.1 ms slower per step than rank 0."),
        (
            {"step": 0.02, "data": 0.005, "backward": 0.01, "forward": 0.004},
            "Rank 1 is 20 ms slower per step than rank 0, 10 ms of it in backward, 5 ms of it in data.",
        ),
        (
            {"data": 0.012, "backward": -0.011},
            "Rank 1 takes 12 ms more per step in data than rank 0, and 11 ms less in backward, where ranks wait for "
            "one another.",
        ),
        (
            {"data": 0.012, "other": 0.01},
            "Rank 1 takes 12 ms more per step in data and 10 ms more per step in other than rank 0.",
        ),
    ],
)
def test_what_sets_a_rank_apart_is_said_in_words(differs: Row, words: str) -> None:
    assert compared(row(0), row(1, differs=differs)).words == (words,)


@pytest.mark.parametrize(
    "differs", [None, {}, {"backward": 0.01}, {"data": -0.01}, {"data": NAN}, {"step": "inf"}, [1]]
)
def test_of_a_rank_that_takes_no_longer_nothing_is_said(differs: Any) -> None:
    assert compared(row(0), row(1, differs=differs)).words == ()


def test_of_many_ranks_each_is_compared_with_the_median_and_few_are_named() -> None:
    slow = [row(rank, differs={"step": 0.01 * rank}) for rank in range(1, 12)]
    found = compared(row(0), *slow)

    assert found.words[0] == "Rank 11 is 110 ms slower per step than the median of the others."
    assert found.words[8:] == ("3 more ranks take longer than the others.",)


@pytest.mark.parametrize(
    ("one", "two", "marks"),
    [
        ({}, {}, ("", "")),
        ({"step": -0.01}, {"step": 0.01}, ("fastest", "slowest")),
        ({"data": -0.01, "backward": 0.01}, {"data": 0.01, "backward": -0.01}, ("waits most", "waited for")),
        ({"backward": 0.01}, {"backward": -0.01}, ("", "")),
    ],
)
def test_the_slowest_and_the_fastest_are_marked_where_they_differ(one: Row, two: Row, marks: tuple[str, ...]) -> None:
    assert compared(row(0, differs=one), row(1, differs=two)).marks == marks


@pytest.mark.parametrize(
    ("late", "said"),
    [((0.0, 0.0123), True), ((0.0, 0.009), False), ((None, None), False), ((NAN, INF), False), ((-1.0, "x"), False)],
)
def test_who_comes_late_to_the_first_collective_is_named_where_it_matters(late: tuple[Any, Any], said: bool) -> None:
    words = compared(row(0, late=late[0]), row(1, late=late[1])).words
    assert (words == ("Rank 1 comes 12.3 ms late to the first collective of a step (median).",)) is said


def test_the_table_holds_what_is_known_and_no_empty_column() -> None:
    found = compared(row(0, host="a", device="cpu"), row(1, host="b", device="cpu", ended="error", seconds=None))

    names = [each.name for each in found.columns]
    assert names == ["rank", "step", "data", "forward", "backward", "where", "ended"]
    assert column(found, "where") == ("a", "b")
    assert column(found, "data") == ("10 ms", "")
    assert column(found, "ended") == ("", "error")


@pytest.mark.parametrize(
    ("one", "two", "where"),
    [
        ({"host": "n1.x.org"}, {"host": "n2.x.org"}, ("n1", "n2")),
        ({"host": "n1.x.org"}, {"host": "n1.y.org"}, ("n1.x.org", "n1.y.org")),
        ({"host": "n1", "device": "cuda:0"}, {"host": "n1", "device": "cuda:1"}, ("n1 cuda:0", "n1 cuda:1")),
        ({"host": "n1", "device": "cpu"}, {"host": "n1", "device": "cpu"}, ()),
        ({"host": None, "device": 3}, {"host": "a" * 50}, ("", "a" * 39 + "…")),
    ],
)
def test_hosts_and_devices_are_told_where_they_differ(one: Row, two: Row, where: tuple[str, ...]) -> None:
    assert column(compared(row(0, **one), row(1, **two)), "where") == where


@pytest.mark.parametrize(
    ("peak", "name", "cells"), [(2**30, "device memory", ("1 GiB", "")), (None, "host memory", ("1 KiB", "2 KiB"))]
)
def test_the_memory_is_that_of_the_device_where_there_is_one(peak: Any, name: str, cells: tuple[str, ...]) -> None:
    found = compared(row(0, memory={"rss": 1024, "peak": peak}), row(1, memory={"rss": 2048, "peak": None}))
    assert [each.name for each in found.columns if "memory" in each.name] == [name]
    assert column(found, name) == cells


def test_ranks_of_an_old_record_are_told_from_their_shares() -> None:
    old = {"rank": 1, "steps": 40, "step_time": {"median": 0.1}, "shares": {"data": 0.5, "forward": 7}}
    assert column(compared(row(0), old), "data") == ("10 ms", "50 ms")


def test_ranks_that_left_no_record_and_no_step_are_counted() -> None:
    found = side({"ranks": {"world_size": 4, "each": [row(2), {"rank": 0}]}})
    assert found is not None
    assert found.note == "2 of 4 ranks left a record."  # and their steps differ
    assert column(found, "rank") == ("0", "2")
    assert column(found, "steps") == ("0", "40")


@pytest.mark.parametrize(
    ("residual", "note"),
    [
        (0.0002, "40 steps each. The clocks of the hosts agree within 200 µs."),
        (0, "40 steps each."),
        (NAN, "40 steps each."),
    ],
)
def test_how_well_the_clocks_of_several_hosts_agree_is_told(residual: Any, note: str) -> None:
    assert compared(row(0), row(1), late={"clock_residual": residual}).note == note


def test_of_many_ranks_those_of_the_heat_map_are_shown() -> None:
    drawn = [*range(400, 432), *range(0, 320, 10)]
    found = compared(*(row(rank) for rank in range(512)), heat={"ranks": drawn})

    assert len(found.marks) == SHOWN
    assert column(found, "rank")[-1] == "431"
    assert found.some == "64 of 512 ranks are shown: the slowest half, the others evenly chosen."
    assert (found.of, found.note) == (512, "40 steps each.")
    assert "and 504 more" in render(Case(measurements=told(*(row(rank) for rank in range(512)))), "console")


def test_a_terminal_shows_eight_ranks_the_slowest_among_them() -> None:
    rows = [row(rank, differs={"step": 0.01} if rank == 30 else {}) for rank in range(32)]
    said = render(Case(measurements=told(*rows)), "console")

    assert "and 24 more" in said
    assert "30  slowest" in said


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_row_of_a_terminal_is_wider_than_the_paper(width: int, cases: dict[str, Case]) -> None:
    said = render(cases["ranks-run"], "console", Paper(width))
    assert max(map(len, said.splitlines())) <= width
    assert "3  waited for" in said
    assert ("node-1" in said) is (width >= 120)


def test_ranks_that_stand_at_the_same_place_are_told_together_and_the_odd_one_first() -> None:
    waits = {"step": 4, "seconds": 3.0, "waits_in": "all_reduce", "seq": 9, "group": 0, "path": "a.py", "line": 7}
    waits["state"] = "waits"
    rows = [{"rank": rank, **waits, "seconds": 3.0 + rank, "step": 4 + rank} for rank in (0, 1, 3)]
    found = hangs(told(hang=[*rows, {"rank": 2, "state": "sleeping", "path": "b.py"}]))

    assert [(each.ranks, each.stands, each.place) for each in found] == [
        ("2", "sleeping", "b.py"),
        ("0-1, 3", "waits in all_reduce, number 9 of group 0, for 3 s", "a.py:7, step 4 to 7"),
    ]


@pytest.mark.parametrize(
    ("told_of", "words"),
    [
        ({"state": "still", "seconds": 4.0}, "stands still, for 4 s"),
        ({"state": "waits", "waits_in": "recv", "group": "0"}, "waits in recv"),
        ({"state": "lost", "waits_in": "barrier", "seq": 3}, "gave up waiting in barrier, number 3"),
        ({"state": "failed", "error": "ValueError"}, "failed with ValueError"),
        ({"state": "ended", "error": None}, "has ended"),
        ({"state": "in a way of its own"}, "in a way of its own"),
        ({}, "is in no collective"),
    ],
)
def test_what_a_rank_does_that_stands_is_said_in_words(told_of: Row, words: str) -> None:
    (found,) = hangs(told(hang=[{"rank": 1, **told_of}]))
    assert found.stands == words


@pytest.mark.parametrize(
    ("numbers", "words"), [([4], "4"), ([0, 1, 2], "0-2"), ([0, 2, 3, 9], "0, 2-3, 9"), ([1, 1], "1")]
)
def test_numbers_of_ranks_are_told_as_ranges(numbers: list[int], words: str) -> None:
    assert ranges(numbers) == words


@pytest.mark.parametrize(
    ("looks", "first", "words"),
    [
        ([(0, 0, 34), (4, 0, 34)], None, "34 tensors of the model were the same on the ranks that hold them at 2 looks, the last one after step 4."),
        ([(0, 0, 1)], None, "1 tensor of the model was the same on the ranks that hold it at 1 look, the last one after step 0."),
        (
            [(4, 1, 34), (0, 0, 34)],
            {"step": 4, "tensor": "head.bias", "ranks": [1, 3]},
            "After step 4, 1 of 34 tensors differs between ranks 1, 3: head.bias is the first. After step 0 all were the same.",
        ),
        (
            [(0, 2, 34)],
            {"ranks": [3, None]},
            "After step 0, 2 of 34 tensors differ between ranks, rank 3 from the others.",
        ),
        ([(0, 2, 34)], {"tensor": 3, "ranks": "all"}, "After step 0, 2 of 34 tensors differ between ranks."),
    ],
)  # fmt: skip
def test_whether_replicas_stayed_the_same_is_said_in_words(looks: list[Any], first: Any, words: str) -> None:
    rows = [dict(zip(("step", "differing", "of"), look, strict=True)) for look in looks]
    found = replicas(told(divergence={"looks": rows, "first": first}))
    assert found is not None
    assert found.words == words


def test_replicas_are_drawn_only_where_they_drift_apart() -> None:
    looks = [{"step": step, "differing": step // 4, "of": 9} for step in (0, 4, 8)]
    plot = divergence(told(divergence={"looks": looks}))
    assert plot is not None
    assert (plot.steps, plot.columns) == ((0, 4, 8), {"differing": (0.0, 1.0, 2.0)})
    assert divergence(told(divergence={"looks": looks[:1]})) is None
    assert divergence(told(divergence={"looks": looks[1:2]})) is None


@pytest.mark.parametrize(("unit", "home"), [("tensors", "divergence"), ("of the step", None)])
def test_evidence_on_replicas_is_seen_where_their_drift_is_drawn(unit: str, home: str | None) -> None:
    looks = [{"step": step, "differing": step, "of": 9} for step in (0, 4)]
    plot = divergence(told(divergence={"looks": looks}))
    assert plot is not None
    found = seen(Sight("here", "a fact", "", "", None, unit), [plot])
    assert (found.id if found else None) == home


def warm(**more: Any) -> Row:
    drawn = {"of": 3, "ranks": [0, 1, 2], "steps": [0, 10], "wide": 10, "phases": {"data": [[0.01, 0.01]] * 3}, **more}
    return told(row(0), row(1), row(2), heat=drawn)


def test_a_cell_tells_how_much_more_it_is_than_the_median_of_the_others() -> None:
    found = heat(warm(phases={"data": [[0.01, 0.01], [0.02, None], [0.04, 0.03]]}))
    assert found is not None
    assert found.times["data"][1] == (20.0, None)
    assert found.beyond["data"] == ((-20.0, -20.0), (-5.0, None), (25.0, 20.0))
    assert "Each cell is the median over 10 steps." in found.note


def test_noise_stays_pale_in_a_heat_map() -> None:
    found = heat(warm(phases={"data": [[0.0001, 0.0002], [0.0002, 0.0001], [0, 0]], "forward": [[0.1, 0.1]] * 3}))
    assert found is not None
    assert found.span == pytest.approx(5.0)  # a twentieth of 100 ms


def test_a_rank_that_lags_all_along_sets_the_scale_among_many() -> None:
    rows = [[0.01 + 0.0001 * ((rank + step) % 3) for step in range(9)] for rank in range(63)]
    found = heat(warm(ranks=list(range(64)), steps=list(range(9)), phases={"data": [*rows, [0.03] * 9]}))
    assert found is not None
    assert found.span == pytest.approx(19.9)


def test_phases_in_which_ranks_hardly_differ_are_named_and_not_drawn() -> None:
    found = heat(warm(phases={"data": [[0.1, 0.1], [0.2, 0.2], [0.1, 0.1]], "forward": [[0.1, 0.1]] * 3}))
    assert found is not None
    assert list(found.times) == list(found.beyond) == ["data"]
    assert found.note.endswith("In forward they hardly differ.")


def test_ranks_that_differ_nowhere_are_drawn_all_the_same() -> None:
    found = heat(warm())
    assert found is not None
    assert list(found.times) == ["data"]


DAMAGED: list[Callable[[], Row]] = [
    lambda: {"ranks": "many"},
    lambda: {"ranks": {"world_size": "two", "each": "all", "heat": 3, "hang": 3, "divergence": 3}},
    lambda: told(3, None, "x"),
    lambda: told({"rank": True}, {"rank": "1"}, {"rank": 2.5}),
    lambda: {"ranks": {"each": [], "heat": {"ranks": [], "steps": []}, "divergence": {"looks": []}, "hang": []}},
    lambda: {"ranks": {"hang": [{"rank": None}, {}, 3], "divergence": {"looks": [{}, 3, {"step": "a"}]}}},
]


@pytest.mark.parametrize("damaged", DAMAGED)
def test_figures_of_ranks_that_do_not_fit_are_left_out(damaged: Callable[[], Row]) -> None:
    for form in ("console", "markdown", "html"):
        assert render(Case(measurements=damaged()), form) == render(Case(), form)


@pytest.mark.parametrize(
    "more",
    [
        {"phases": {"data": [[0.1]]}},
        {"phases": {"data": "text"}},
        {"phases": None},
        {"steps": [0, None]},
        {"steps": []},
        {"ranks": [0]},
        {"ranks": ["a", "b", "c"]},
    ],
)
def test_a_heat_map_whose_figures_do_not_fit_is_not_drawn(more: Row) -> None:
    assert heat(warm(**more)) is None
    assert "heat-map" not in render(Case(measurements=warm(**more)), "html")


@pytest.mark.parametrize("value", [NAN, INF, -INF, "nan", "inf", -1, "text", None, True, [1]])
@pytest.mark.parametrize("form", ["console", "markdown", "html"])
def test_a_figure_that_is_no_number_is_shown_nowhere(form: str, value: Any) -> None:
    broken = row(
        1,
        step_time={"median": value},
        seconds=dict.fromkeys(("data", "forward"), value),
        differs=dict.fromkeys(("step", "data"), value if value != -1 else "text"),
        late=value,
        memory={"rss": value, "peak": value},
    )
    scaling = dict.fromkeys(("efficiency", "ranks", "samples_per_second", "baseline_samples_per_second"), value)
    cells = {"ranks": [0, 1], "steps": [0, 1], "phases": {"data": [[value, 0.1], [0.1, value]]}}
    hang = [{"rank": 1, "step": value, "seconds": value, "seq": value, "line": value, "group": value}]
    case = Case(measurements=told(row(0), broken, heat=cells, scaling=scaling if value != -1 else 0, hang=hang))
    said = render(case, form)
    words = said.split("<main>")[-1].split("</main>")[0]
    assert "nan" not in words
    assert "inf" not in words
