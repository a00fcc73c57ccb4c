"""What is said of tensors that are read number by number."""

from __future__ import annotations

from typing import Any

import pytest
from records import Events, evidence, found, steps

from torchtriage.specialists.tensor_operations_and_memory.readings import elements

READ = {"kind": "elements", "step": 13, "at": 13, "path": "t.py", "line": 9, "reads": 3000, "seconds": 1e-6}


def reads(**change: Any) -> Events:
    return [{**READ, **change}, {**READ, "step": 41, "at": 41, **change}]


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param(reads(), {"python-loop-over-tensor"}, id="3 ms of each step of 10 ms"),
        pytest.param(reads(reads=64), set(), id="the lengths of a batch"),
        pytest.param(reads()[:1], set(), id="an evaluation in one of the steps"),
        pytest.param([READ, {**READ, "line": 30}], set(), id="another line in the other step"),
        pytest.param([READ, {**READ, "reads": 70}], set(), id="few in the other step"),
        pytest.param([], set(), id="nothing is read"),
    ],
)
def test_numbers_read_one_by_one_are_told_where_that_takes_a_twentieth_of_each_step(
    events: Events, slugs: set[str]
) -> None:
    assert found(elements.python_loop_over_tensor, [*steps(40, seconds=0.01), *events]) == slugs


def test_the_step_that_reads_less_is_told() -> None:
    rows = [*steps(40, seconds=0.01), READ, {**READ, "step": 41, "reads": 2000}]
    (item,) = evidence(elements.python_loop_over_tensor, rows)
    assert item.value == pytest.approx(0.2)
    assert item.fact == (
        "2,000 numbers are read out of tensors one by one in each step, 1 µs each: 2 ms of a step of 10 ms, before "
        "what the loop does with them"
    )
