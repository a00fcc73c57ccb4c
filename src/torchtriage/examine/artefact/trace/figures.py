"""The figures of traces, by the names of the interface: times in seconds, shares of the step from 0 to 1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from torchtriage.examine.artefact.trace.drawn import by_number
from torchtriage.examine.artefact.trace.rank import ROWS, KernelRow, OperatorRow, RankSummary
from torchtriage.examine.artefact.trace.traces import Traces

TOP, POINTS = 10, 100
_ROWS, _STEPS = 2**12, 2**16
"""Of all tables of one name, and of all courses over the steps: each of 10,000 ranks has three rows and eight steps."""
NAMES = 64
"""Kernels or operators, by name, of all ranks together."""


def measurements(traces: Traces) -> dict[str, Any]:
    """Of all ranks together, of each, and how they came to their collectives; nothing where nothing was read."""
    if not traces.ranks:
        return {}
    residual, count = traces.clocks.residual, len(traces.ranks)
    top, points = min(TOP, max(_ROWS // count, 3)), min(POINTS, max(_STEPS // count, 8))
    return {
        "ranks": [
            _of_rank(number, each, top, points) for number, each in zip(traces.numbers, traces.ranks, strict=True)
        ],
        "world": traces.world,
        "shares": _shares(traces.ranks),
        "clocks": None if residual is None else {"residual": residual / 1e9},
        "late": _late(traces, points),
        "step": _step(traces.ranks),
        "kernels": _names(
            traces.ranks, [[(*_row(row), row.nanoseconds) for row in each.kernels] for each in traces.ranks]
        ),
        "operators": _names(traces.ranks, [[(*_row(row), row.own) for row in each.operators] for each in traces.ranks]),
    }


def _step(ranks: Sequence[RankSummary]) -> dict[str, Any]:
    """How many steps were recorded, by how many ranks, and the seconds of each phase.

    Of a step the median of the ranks, and of the steps their median; of a trace without marks none.
    """
    steps = by_number(ranks)
    phases = dict.fromkeys(phase for each in steps.values() for step in each for phase in step.spent)
    seconds = {
        phase: median(median(step.spent.get(phase, 0) for step in each) for each in steps.values()) / 1e9
        for phase in phases
    }
    return {"ranks": len(ranks), "steps": len(steps), "seconds": seconds}


def _row(row: KernelRow | OperatorRow) -> tuple[str, int]:
    return row.name, row.count


def _names(ranks: Sequence[RankSummary], tables: Iterable[Sequence[tuple[str, int, int]]]) -> dict[str, Any]:
    """Calls and seconds in the mean of a step of a rank, by name, the longest first. whole: whether all are there."""
    steps, whole = max(sum(each.count for each in ranks), 1), True
    known: dict[str, list[int]] = {}
    for table in tables:
        whole = whole and len(table) < ROWS
        for name, count, nanoseconds in table:
            row = known.setdefault(name, [0, 0])
            row[0], row[1] = row[0] + count, row[1] + nanoseconds
    longest = sorted(known.items(), key=lambda item: (-item[1][1], item[0]))
    rows = [{"name": name, "count": row[0] / steps, "seconds": row[1] / steps / 1e9} for name, row in longest[:NAMES]]
    return {"whole": whole and len(known) <= NAMES, "rows": rows}


def _of_rank(number: int, told: RankSummary, top: int, points: int) -> dict[str, Any]:
    return {
        "rank": number,
        "path": told.path,
        "host": told.host,
        "device": told.device,
        "events": told.events,
        "steps": told.count,
        "step_time": told.length / max(told.count, 1) / 1e9,
        "shares": _shares((told,)),
        "overlap": _overlap(told),
        "timeline": [{"step": step.number, **_seconds(step.spent)} for step in told.steps[:points]],
        "kernels": [_named(row.name, row.count, row.nanoseconds, told.kernel_time) for row in told.kernels[:top]],
        "operators": [_named(row.name, row.count, row.own, told.length) for row in told.operators[:top]],
        "copies": [
            {**_named(row.name, row.count, row.nanoseconds, told.length), "bytes": row.bytes}
            for row in told.copies[:top]
        ],
        "waits": [
            {"call": row.call, "operator": row.operator, "count": row.count, "path": row.path, "line": row.line}
            for row in told.waits[:top]
        ],
    }


def _overlap(told: RankSummary) -> float | None:
    """The part of communication on a device that computing hides, from 0 to 1; None without any."""
    if not told.communicating:
        return None
    return max(1.0 - told.total.get("communication", 0) / told.communicating, 0.0)


def _named(name: str, count: int, nanoseconds: int, whole: int) -> dict[str, Any]:
    return {"name": name, "count": count, "seconds": nanoseconds / 1e9, "share": nanoseconds / max(whole, 1)}


def _seconds(spent: dict[str, int]) -> dict[str, float]:
    return {phase: time / 1e9 for phase, time in spent.items()}


def _shares(ranks: tuple[RankSummary, ...]) -> dict[str, float]:
    whole = max(sum(each.length for each in ranks), 1)
    phases = dict.fromkeys(phase for each in ranks for phase in each.total)
    return {phase: sum(each.total.get(phase, 0) for each in ranks) / whole for phase in phases}


def _late(traces: Traces, points: int) -> dict[str, list[float]]:
    """For each rank by how many seconds it came later than half of the others to each step's first collective."""
    late: dict[str, list[float]] = {str(number): [] for number in traces.numbers} if traces.arrivals else {}
    for arrival in traces.arrivals:
        for number in arrival.begins:
            if len(late[str(number)]) < points:
                late[str(number)].append(arrival.late(number) / 1e9)
    return late
