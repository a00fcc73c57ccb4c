"""What is said of evaluations over parts of the samples, from records made by hand, and what is read out of source."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from torchtriage.core.evidence import Observed
from torchtriage.examine.detector import perform
from torchtriage.examine.run.record import RankRecord, RunRecord
from torchtriage.specialists.distributed_training_strategies.probes._counted import counted
from torchtriage.specialists.distributed_training_strategies.readings import figures

EVALUATED = {
    "kind": "evaluated", "step": 24, "path": "t.py", "loop": 30, "line": 34, "counts": 32, "labelled": False,
    "passes": 1, "exchanges": 0,
}  # fmt: skip
SAMPLERS = [{"replicas": 2, "rank": rank} for rank in range(2)]
STRIDES = [{"first": rank, "step": 2, "number": 50, "last": 98 + rank} for rank in range(2)]
BLOCKS = [{"first": 50 * rank, "step": 1, "number": 50, "last": 50 * rank + 49} for rank in range(2)]


def lines(parts: list[dict[str, int]], *changes: dict[str, Any]) -> list[int | None]:
    """The lines that are told of two ranks that evaluated PARTS; one change for each rank that has any."""
    told = [
        RankRecord(number, ({**EVALUATED, "part": part, **(changes[number] if number < len(changes) else {})},))
        for number, part in enumerate(parts)
    ]
    (outcome,) = perform([figures.metrics_not_reduced], RunRecord(tuple(told)))
    assert isinstance(outcome, Observed), outcome
    return [each.place.line for each in outcome.evidence]


@pytest.mark.parametrize("parts", [SAMPLERS, STRIDES, BLOCKS], ids=["sampler", "stride", "blocks"])
def test_a_figure_of_a_part_of_the_samples_is_told_where_it_is_made_counted_and_looped(parts: Any) -> None:
    assert lines(parts) == [34, 32, 30]


@pytest.mark.parametrize(
    ("parts", "changes"),
    [
        (SAMPLERS, [{"exchanges": 1}, {"exchanges": 1}]),
        (SAMPLERS, [{"labelled": True}, {"labelled": True}]),
        ([{}, {}], []),
        ([SAMPLERS[0]], []),
        ([SAMPLERS[0], SAMPLERS[0]], []),
        ([STRIDES[0], STRIDES[0]], []),
        ([BLOCKS[0], BLOCKS[0]], []),
        ([BLOCKS[0], STRIDES[1]], []),
        ([{"first": 3, "step": 7, "number": 9, "last": 40}, {"first": 1, "step": 2, "number": 9, "last": 12}], []),
    ],
    ids=["exchanged", "labelled", "whole", "one-rank", "same-share", "same-stride", "same-block", "mixed", "drawn"],
)
def test_figures_that_are_exchanged_labelled_or_of_the_same_samples_are_left_alone(parts: Any, changes: Any) -> None:
    assert lines(parts, *changes) == []


LOOP = "def score(loader):\n    n, seen = 0, []\n    for x in loader:\n        n += len(x)\n        seen.append(x)\n"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (LOOP + "    return n / 5\n", (6, 4, False)),
        (LOOP + "    return sum(seen) / 5\n", (6, 5, False)),
        (LOOP + "    every = torch.cat(seen)\n    return every.mean()\n", (7, 3, False)),
        (LOOP + "    return accuracy_score(seen, seen)\n", (6, 5, False)),
        (LOOP + "    return n / 5\nfound = score(l)\nprint(rank, found)\n", (6, 4, True)),
        (LOOP + "    return n / 5\nprint(f'{rank}: {score(l)}')\n", (6, 4, True)),
        (LOOP + "    return n / 5\nprint(f'rank {os.getpid()}: {score(l)}')\n", (6, 4, False)),
        (LOOP + "    return n / 5\nfound = score(l)\nprint(rank)\nprint(found)\n", (6, 4, False)),
        ("m = Meter()\n\nfor x in loader:\n    m.update(x)\nprint(m.avg)\n", (5, 4, False)),
        ("def f(loader):\n\n    losses = [g(x) for x in loader]\n    return np.mean(losses)\n", (4, 3, False)),
    ],
)
def test_the_line_that_makes_a_figure_of_what_a_loop_counts_is_found(source: str, expected: Any) -> None:
    found = counted(ast.parse(source), 3)
    assert found is not None
    assert (found.line, found.counts, found.labelled) == expected


@pytest.mark.parametrize(
    "source",
    [
        LOOP + "    return n\n",
        LOOP + "    return 3 / 5\n",
        "def f(loader):\n\n    for x in loader:\n        pass\n    return x / 2\n",
        "def f(loader):\n    n = 0\n    for x in loader:\n        n += 1\n        print(n / 5)\n",
    ],
)
def test_what_is_not_averaged_after_the_loop_is_no_figure(source: str) -> None:
    assert counted(ast.parse(source), 3) is None
