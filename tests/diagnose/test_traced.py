"""Traces before and after a change, from figures made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from torchtriage.core.case import Case
from torchtriage.diagnose.compare import compare
from torchtriage.diagnose.traced import TOP, Traced, traced

GEMM, ADAM = "ampere_gemm", "fused_adam"


def case(
    rows: dict[str, Any], *, ranks: int = 2, steps: int = 8, whole: bool = True, **seconds: float
) -> dict[str, Any]:
    table = {"whole": whole, "rows": [{"name": name, "count": 4.0, "seconds": each} for name, each in rows.items()]}
    told = {"step": {"ranks": ranks, "steps": steps, "seconds": seconds}, "kernels": table}
    return {"trace": told, "steps": steps, "step_time": {"median": sum(seconds.values()) or 1.0}}


def told(before: dict[str, Any], after: dict[str, Any]) -> Traced:
    found = traced(before, after)
    assert found is not None
    return found


def moves(found: Traced) -> dict[str, str]:
    return {each.name: each.change for each in found.rows}


def test_the_seconds_of_each_phase_stand_side_by_side() -> None:
    found = told(case({}, compute=0.05, input=0.02), case({}, compute=0.03, sync=0.01))
    assert found.seconds == {"compute": (0.05, 0.03), "input": (0.02, None), "sync": (None, 0.01)}


def test_what_changed_most_comes_first_and_what_hardly_did_is_left_out() -> None:
    before = case({GEMM: 0.04, ADAM: 0.004, "fill": 0.0001}, compute=0.05)
    after = case({GEMM: 0.02, ADAM: 0.006, "fill": 0.00015}, compute=0.03)
    assert moves(told(before, after)) == {GEMM: "smaller", ADAM: "larger"}


def test_a_kernel_of_one_side_is_new_or_gone() -> None:
    found = told(case({GEMM: 0.04, ADAM: 0.01}, compute=0.05), case({"sgemm": 0.05, ADAM: 0.01}, compute=0.06))
    assert moves(found) == {"sgemm": "new", GEMM: "gone"}


def test_a_kernel_that_may_only_have_become_too_short_for_the_table_is_not_called_gone() -> None:
    before = case({GEMM: 0.04, ADAM: 0.0104}, whole=False, compute=0.05)
    after = case({GEMM: 0.01, "copy": 0.01}, whole=False, compute=0.02)
    found = told(before, after)
    assert moves(found) == {GEMM: "smaller", ADAM: "smaller"}
    assert [each.why for each in found.rows] == ["", "not among the 2 longest after"]


def test_a_kernel_that_was_too_short_for_the_table_before_is_not_called_new() -> None:
    before = case({GEMM: 0.04, ADAM: 0.01}, whole=False, compute=0.05)
    after = case({GEMM: 0.04, ADAM: 0.01, "copy": 0.009, "sort": 0.02}, compute=0.07)
    found = told(before, after)
    assert moves(found) == {"sort": "larger"}
    assert found.rows[0].why == "not among the 2 longest before"


def test_without_a_device_operators_are_told() -> None:
    sides = [
        {"trace": {"operators": {"whole": True, "rows": [{"name": "aten::mm", "count": 1, "seconds": each}]}}}
        for each in (1.0, 3.0)
    ]
    found = told(*sides)
    assert (found.what, moves(found)) == ("operators", {"aten::mm": "larger"})


def test_the_table_has_an_end() -> None:
    rows = {f"kernel{number}": 0.001 * (number + 1) for number in range(50)}
    assert len(told(case(rows, compute=0.05), case({}, compute=0.05)).rows) == TOP


def test_other_numbers_of_ranks_are_said_and_bar_nothing() -> None:
    outcome = compare(
        Case(measurements=case({}, ranks=8, compute=0.2)), Case(measurements=case({}, ranks=4, compute=0.1))
    )
    assert [(doubt.what, doubt.before, doubt.after, doubt.bars) for doubt in outcome.runs.doubts] == [
        ("ranks", "8", "4", False)
    ]
    assert outcome.runs.timing is not None
    assert outcome.runs.timing.faster == 2.0


def test_as_many_ranks_are_no_doubt() -> None:
    assert compare(Case(measurements=case({}, compute=1)), Case(measurements=case({}, compute=1))).runs.doubts == ()


@pytest.mark.parametrize("broken", [{}, {"trace": 3}, {"trace": None}])
def test_one_side_without_traces_has_nothing_to_compare(broken: dict[str, Any]) -> None:
    assert traced(case({}), broken) is None


@pytest.mark.parametrize(
    "broken",
    [
        {"kernels": 3},
        {"kernels": {"rows": [3, {"name": 1}, {"name": "x", "count": 1, "seconds": -1}]}},
        {"step": {"seconds": [1]}},
    ],
)
def test_figures_that_do_not_fit_are_left_out(broken: dict[str, Any]) -> None:
    assert told({"trace": broken}, {"trace": broken}).rows == ()


def test_two_snapshots_are_compared_by_their_memory_alone() -> None:
    sides = [Case(measurements={"memory": {"allocated": {"highest": size}}}) for size in (8e9, 4e9)]
    assert compare(*sides).runs.doubts == ()
    assert compare(*sides).runs.memory == {"allocated": (8e9, 4e9)}
