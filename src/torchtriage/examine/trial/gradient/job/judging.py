"""Whether a gradient is the derivative, input by input and entry by entry."""

from __future__ import annotations

import time
from math import isnan
from typing import TYPE_CHECKING, Any

from . import explaining
from .problem import differ, flat, settle, weights, where
from .slopes import Moves, Slope, agrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .problem import Problem

Row = dict[str, Any]
ENTRIES = 40  # of each input that are compared; all where there are no more
LARGEST = 8  # of these, those with the largest gradient
SECONDS = 20.0  # for the first differences of one input
FAR = (0.37, 1.7, 11.0)  # moves of all numbers at once that show whether an output depends on an input at all


class NotJudged(Exception):
    """A gradient that cannot be judged at this point. why, unblock: as in Inconclusive."""

    def __init__(self, why: str, unblock: str) -> None:
        super().__init__(why)
        self.why, self.unblock = why, unblock


class Judged:
    """What one point showed. rows: one for each input; wrong: those that are sure."""

    def __init__(self, rows: list[Row], by: Sequence[Any], gradients: Sequence[Any]) -> None:
        self.rows, self.weights, self.gradients = rows, by, gradients

    def of(self, state: str) -> list[Row]:
        """The inputs of one state: right, wrong, none, flat, unsettled."""
        return [row for row in self.rows if row["state"] == state]


def judge(problem: Problem, reference: Problem | None = None, seed: int = 0, scale: float = 1.0) -> Judged:
    """Compares backward with differences, or with the gradients of REFERENCE where that is given.

    Raises NotJudged where forward is not a function of its inputs, and whatever forward or backward raise.
    """
    began = time.perf_counter()
    middle = problem.outputs()
    seconds = time.perf_counter() - began
    _repeats(problem, middle)
    by = weights(middle, seed, scale)
    traced = problem.traced()
    by = [each if out.requires_grad else None for each, out in zip(by, traced.outputs, strict=True)]
    if all(each is None for each in by):
        by = _differentiable(weights(middle, seed, scale), middle)
    gradients = traced.gradients(by)
    known = reference.gradients(by) if reference is not None else None
    rows = [_row(problem, place, by, gradients, known, seconds) for place in range(len(problem.values))]
    judged = Judged(rows, by, gradients)
    if reference is None:
        _by_design(problem, judged)
    for row in judged.of("wrong"):
        row.update(explaining.explained(problem, row, judged))
    return judged


def _differentiable(by: list[Any], outputs: Sequence[Any]) -> list[Any]:
    return [
        each if out.is_floating_point() or out.is_complex() else None for each, out in zip(by, outputs, strict=True)
    ]


def _repeats(problem: Problem, middle: Sequence[Any]) -> None:
    import torch

    if not middle:
        raise NotJudged("it returns no tensor", "Name a function that returns one.")
    if not all(bool(torch.isfinite(each).all()) for each in middle):
        raise NotJudged("an output is not finite at these inputs", "Give inputs from its domain by --inputs.")
    if differ(problem.outputs(), middle) is not None:
        raise NotJudged(
            "forward gives other values for the same inputs and the same seed: no difference can be taken",
            "Draw from torch's default generator, or make what is drawn an input; keep no state between calls.",
        )


def _row(
    problem: Problem, place: int, by: Sequence[Any], gradients: Sequence[Any], known: Sequence[Any] | None, cost: float
) -> Row:
    """What is to be said of one input."""
    value, gradient = problem.values[place], gradients[place]
    row: Row = {"input": problem.numbers[place], "name": problem.names[place], "place": place, "of": value.numel()}
    analytical = flat(value) * 0 if gradient is None else flat(gradient)
    positions = _positions(analytical, cost)
    slopes = (
        _known(known[place], value, positions)
        if known is not None
        else _slopes(problem, place, by, analytical, positions)
    )
    largest = max(
        (abs(each) for each in [*_numbers(analytical, positions), *(s.value for s in slopes)] if not isnan(each)),
        default=0.0,
    )
    judged = [number for number, slope in enumerate(slopes) if slope.state == "settled"]
    bad = [number for number in judged if not agrees(float(analytical[positions[number]]), slopes[number], largest)]
    row |= {"judged": len(judged), "looked": len(positions), "differ": len(bad), "missing": gradient is None}
    row |= {"positions": [positions[n] for n in judged], "truth": [slopes[n].value for n in judged], "largest": largest}
    row["kinks"] = sum(slope.state == "kink" for slope in slopes)
    if bad:
        worst = max(bad, key=lambda n: abs(float(analytical[positions[n]]) - slopes[n].value))
        row |= {"entry": where(positions[worst], value), "analytical": float(analytical[positions[worst]])}
        row["numerical"] = slopes[worst].value
    row["state"] = _state(row, value, bad)
    return row


def _state(row: Row, value: Any, bad: Sequence[int]) -> str:
    if row["missing"]:
        return "none" if bad else "right"
    if bad:
        return "symmetric" if explaining.is_symmetric(value) else "wrong"
    return "right" if row["judged"] or not value.numel() else "unsettled"


def _positions(analytical: Any, cost: float) -> list[int]:
    """Which entries are compared: all, or the first, the last, the largest, and others spread evenly."""
    import torch

    number = analytical.numel()
    most = max(6, min(ENTRIES, int(SECONDS / (4 * cost + 1e-9))))
    if number <= most:
        return list(range(number))
    size = torch.nan_to_num(analytical.abs(), nan=float("inf"))
    top = torch.topk(size, min(LARGEST, most // 3)).indices.tolist()
    spread = torch.randperm(number, generator=torch.Generator().manual_seed(number)).tolist()
    return sorted(dict.fromkeys([0, number - 1, *top, *spread][: most + 2]))[:most]


def _slopes(problem: Problem, place: int, by: Sequence[Any], analytical: Any, positions: Sequence[int]) -> list[Slope]:
    """A quick difference each; where that does not agree, a closer look."""
    moves = Moves(problem, place, by)
    quick = [moves.quick(at) for at in positions]
    largest = max((abs(each) for each in [*quick, *_numbers(analytical, positions)] if not isnan(each)), default=0.0)
    slopes = []
    for at, value in zip(positions, quick, strict=True):
        slope = Slope(value, 0.0, "settled")
        slopes.append(slope if agrees(float(analytical[at]), slope, largest) else moves.closer(at))
    return slopes


def _known(gradient: Any, value: Any, positions: Sequence[int]) -> list[Slope]:
    row = flat(value) * 0 if gradient is None else flat(gradient)
    return [Slope(float(row[at]), 0.0, "settled") for at in positions]


def _numbers(row: Any, positions: Sequence[int]) -> list[float]:
    return [float(row[at]) for at in positions]


def _by_design(problem: Problem, judged: Judged) -> None:
    """A forward that is flat in steps, as rounding is, with a gradient of its own: no derivative can judge that."""
    steps = [
        row
        for row in judged.rows
        if row["judged"] and not any(row["truth"]) and row["state"] in {"wrong", "right"} and row["of"]
        and _depends(problem, row["place"])
    ]  # fmt: skip
    for row in steps:
        row["state"] = "flat" if row["state"] == "wrong" else "flat-zero"
    if any(row["state"] == "flat" for row in steps):
        for row in judged.of("wrong"):
            row["state"] = "beside-flat"


def _depends(problem: Problem, place: int) -> bool:
    """Whether the outputs change when an input is moved far."""
    import torch

    middle = problem.outputs()
    for size in FAR:
        values = [each.clone() for each in problem.values]
        source = torch.Generator().manual_seed(int(size * 100))
        drawn = torch.randn(values[place].shape, generator=source, dtype=torch.float64)
        values[place] = values[place] + (drawn * size).to(values[place].dtype)
        settle()
        try:
            if differ(problem.outputs(values), middle) is not None:
                return True
        except Exception:  # noqa: BLE001, S112 - out of its domain: that far it does not reach
            continue
    return False
