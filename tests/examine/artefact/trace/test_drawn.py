"""Traces by the names of a run's figures, from summaries made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from torchtriage.core.case import Case
from torchtriage.examine.artefact import trace
from torchtriage.examine.artefact.trace.rank import NAMELESS, RankSummary, StepOf
from torchtriage.report.html import render
from torchtriage.report.html.heat import heat
from torchtriage.report.ranks import side

MS = 1_000_000


def rank(number: int, world: int = 1, steps: int = 8, late: int = 0, first: int = 3, **further: Any) -> RankSummary:
    """Steps of 100 ms; a rank that is LATE milliseconds waits so long for its data, and less for the others."""
    spent = {"compute": 60 * MS, "communication": (40 - late) * MS, "memcpy": 0, "input": late * MS}
    rows = tuple(StepOf(first + at, at * 100 * MS, 100 * MS, spent) for at in range(steps))
    total = {phase: steps * each for phase, each in spent.items()}
    made: dict[str, Any] = {
        "path": f"rank{number}.json", "rank": number, "world": world, "host": "node0", "device": "A100", "base": 0,
        "events": 9, "bytes": 9, "count": steps, "total": total, "length": steps * 100 * MS, "steps": rows,
    }  # fmt: skip
    return RankSummary(**{**made, **further})


def drawn(*ranks: RankSummary) -> dict[str, Any]:
    return trace.as_run(trace.together(ranks))


def test_one_rank_gives_the_figures_of_a_run() -> None:
    told = drawn(rank(0))
    assert told["steps"] == 8
    assert told["step_time"] == {"median": 0.1, "p10": 0.1, "p90": 0.1, "interval": [0.1, 0.1]}
    assert told["shares"] == {"compute": 0.6, "communication": 0.4, "memcpy": 0.0, "input": 0.0}
    assert told["timeline"]["step"] == list(range(3, 11))
    assert told["timeline"]["compute"] == [0.06] * 8
    assert told["setup"] == {"devices": [{"name": "A100"}]}
    assert "ranks" not in told


def test_of_each_step_the_median_rank_counts() -> None:
    told = drawn(*(rank(number, 3, late=(0, 0, 30)[number]) for number in range(3)))
    assert told["timeline"]["input"] == [0.0] * 8
    assert told["timeline"]["communication"] == [0.04] * 8
    assert told["shares"]["input"] == pytest.approx(0.1)


def test_a_rank_that_waits_for_its_data_stands_out_in_the_table_and_in_the_heat_map() -> None:
    told = drawn(*(rank(number, 4, late=30 * (number == 2)) for number in range(4)))
    found, warm = side(told), heat(told)
    assert found is not None
    assert warm is not None
    assert found.marks == ("", "", "waited for", "")
    assert found.words == (
        "Rank 2 takes 30 ms more per step in input than the median of the others, and 30 ms less in communication, "
        "where ranks wait for one another.",
    )
    assert warm.ranks == (0, 1, 2, 3)
    assert warm.beyond["input"][2] == (30.0,) * 8
    assert [part.phase for part in found.lanes[2]] == ["input", "compute", "communication"]
    assert found.lanes[2][-1].start + found.lanes[2][-1].share == pytest.approx(1.0)


def test_too_few_steps_are_drawn_and_not_compared() -> None:
    told = drawn(*(rank(number, 2, steps=4, late=30 * number) for number in range(2)))
    assert [each["differs"] for each in told["ranks"]["each"]] == [{}, {}]
    assert heat(told) is not None


def test_without_marks_of_steps_only_shares_are_told() -> None:
    told = drawn(rank(0, 2, steps=1, first=-1), rank(1, 2, steps=1, first=-1))
    assert set(told) == {"setup", "shares", "ranks"}
    assert told["ranks"]["heat"] is None
    assert [each["steps"] for each in told["ranks"]["each"]] == [0, 0]
    assert side(told) is not None


def test_a_rank_whose_device_is_not_in_its_trace_is_left_out() -> None:
    told = drawn(rank(0, 2), rank(1, 2, unseen="an accelerator"))
    assert [each["rank"] for each in told["ranks"]["each"]] == [0]
    assert drawn(rank(0, unseen="an accelerator")) == {}
    assert drawn() == {}


def test_a_device_without_a_name_is_no_set_up() -> None:
    assert "setup" not in drawn(rank(0, device=NAMELESS))
    assert "setup" not in drawn(rank(0, device=None))


def test_a_thousand_ranks_are_folded_in_the_report() -> None:
    told = drawn(*(rank(number, 1000, steps=100, late=number % 7) for number in range(1000)))
    assert len(told["ranks"]["heat"]["ranks"]) == 64
    from plotly.offline import get_plotlyjs

    assert len(render(Case(measurements=told)).encode()) - len(get_plotlyjs().encode()) < 600_000
