"""Where the time of a step goes: the function by name, and what to do where it is not the model's."""

from __future__ import annotations

from typing import Any

import pytest

from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Place
from torchtriage.core.fault import Fault
from torchtriage.core.finding import Finding
from torchtriage.report import lines
from torchtriage.report.outline import outline


def row(**rest: Any) -> dict[str, Any]:
    return {"path": "data.py", "line": 41, "function": "get_batch", "share": 0.4, "phase": "data", **rest}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row()], "40.0 % of the step is spent in `get_batch` (data.py:41)."),
        ([row(function_share=0.61)], "61.0 % of the step is spent in `get_batch` (data.py:41)."),
        ([row(function="")], "40.0 % of the step is spent at data.py:41."),
        ([row(share=0.2), row(line=7, function="log", share=0.3)], "30.0 % of the step is spent in `log` (data.py:7)."),
        ([row(share=0.09)], ""),
        ([row(share=1.3)], ""),
        ([row(share="much"), "row", None], ""),
        (None, ""),
    ],
)
def test_the_function_that_takes_most_of_the_step_is_named(rows: Any, said: str) -> None:
    assert lines.sentence({"lines": rows}) == said


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (row(), "Prepare once what `get_batch` computes anew for each batch"),
        (row(phase="other", function_share=0.5), "Run `get_batch` every N steps"),
        (row(phase="other", function=""), "Run `data.py:41` every N steps"),
        (row(phase="forward"), ""),
        (row(phase="backward"), ""),
        (row(phase="communication"), ""),
        (row(share=0.29), ""),
        (row(function_share=0.2, phase="other"), ""),
    ],
)
def test_time_outside_of_the_model_has_a_next_step(told: dict[str, Any], said: str) -> None:
    advice = lines.advice({"lines": [told]})
    assert advice.startswith(said)
    assert bool(advice) == bool(said)


def test_where_a_fault_is_found_its_remedies_are_what_to_do(clip: Fault) -> None:
    measurements = {"lines": [row()], "steps": 100}
    assert outline(Case(measurements=measurements)).advice == (lines.advice(measurements),)
    finding = Finding(clip, (Evidence(clip.signs[0].detector, Place("train.py", 3), "clipped"),))
    assert outline(Case(measurements=measurements, findings=(finding,))).advice == ()
