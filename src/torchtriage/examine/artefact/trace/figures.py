"""The figures of traces, by the names of the interface: times in seconds, shares of the step from 0 to 1."""

from __future__ import annotations

from typing import Any

from torchtriage.examine.artefact.trace.rank import RankSummary
from torchtriage.examine.artefact.trace.traces import Traces

TOP, POINTS = 10, 100


def measurements(traces: Traces) -> dict[str, Any]:
    """Of all ranks together, of each, and how they came to their collectives; nothing where nothing was read."""
    if not traces.ranks:
        return {}
    residual = traces.clocks.residual
    return {
        "ranks": [_of_rank(number, each) for number, each in zip(traces.numbers, traces.ranks, strict=True)],
        "world": traces.world,
        "shares": _shares(traces.ranks),
        "clocks": None if residual is None else {"residual": residual / 1e9},
        "late": {str(number): _late(traces, number) for number in traces.numbers} if traces.arrivals else {},
    }


def _of_rank(number: int, told: RankSummary) -> dict[str, Any]:
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
        "timeline": [{"step": step.number, **_seconds(step.spent)} for step in told.steps[:POINTS]],
        "kernels": [_named(row.name, row.count, row.nanoseconds, told.kernel_time) for row in told.kernels[:TOP]],
        "operators": [_named(row.name, row.count, row.own, told.length) for row in told.operators[:TOP]],
        "copies": [
            {**_named(row.name, row.count, row.nanoseconds, told.length), "bytes": row.bytes}
            for row in told.copies[:TOP]
        ],
        "waits": [
            {"call": row.call, "operator": row.operator, "count": row.count, "path": row.path, "line": row.line}
            for row in told.waits[:TOP]
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


def _late(traces: Traces, number: int) -> list[float]:
    """By how many seconds it came later than half of the others to each step's first collective."""
    return [each.late(number) / 1e9 for each in traces.arrivals[:POINTS] if number in each.begins]
