"""What the readings of tensor operations and memory say of events made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from records import Events, evidence, found, steps

from torchtriage.specialists.tensor_operations_and_memory.readings import evaluations

# Models that are evaluated with autograd on

EVALUATED = {
    "kind": "evaluated-with-graph", "step": 60, "root": "Net", "path": "t.py", "line": 9, "training": False,
    "passes": 40, "phases": 2, "nodes": 9,
}  # fmt: skip
LEARNED = {"kind": "learned-from", "step": 60, "root": "Net", "path": "t.py", "line": 9, "training": False}


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([EVALUATED], {"eval-builds-graph"}, id="two validations"),
        pytest.param([{**EVALUATED, "passes": 15}], set(), id="a look at a few samples"),
        pytest.param([EVALUATED, LEARNED], set(), id="an attack: later a backward went through"),
        pytest.param([EVALUATED, {**LEARNED, "training": True}], {"eval-builds-graph"}, id="one line for both modes"),
    ],
)
def test_passes_count_when_no_backward_ever_goes_through_them(events: Events, slugs: set[str]) -> None:
    assert found(evaluations.eval_builds_graph, [*steps(40), *events]) == slugs


def test_the_latest_count_of_a_line_is_told() -> None:
    earlier: dict[str, Any] = {**EVALUATED, "passes": 16, "phases": 1}
    (item,) = evidence(evaluations.eval_builds_graph, [*steps(40), earlier, EVALUATED])
    assert (item.place.path, item.place.line, item.value) == ("t.py", 9, 40)
    assert (
        "40 passes in 2 phases here, in evaluation mode and with autograd on: each recorded a graph of 9" in item.fact
    )
