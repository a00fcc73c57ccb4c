"""Traces by the names of a run's figures: reports draw both alike, and comparisons set both side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any

from torchtriage.examine.artefact.trace.rank import NAMELESS, RankSummary, StepOf
from torchtriage.examine.artefact.trace.traces import Traces
from torchtriage.examine.run.ranks.beside import Track, laid
from torchtriage.examine.run.series.quantiles import interval_of_median, quantile

COMPARED = 5
"""Steps of a rank below which nothing is said of what sets it apart: the usual window of a profiler."""


def as_run(traces: Traces) -> dict[str, Any]:
    """Seconds; of a step the median of the ranks. Nothing of ranks whose device's work is not in their traces."""
    known = [
        (number, each)
        for number, each in zip(traces.numbers, traces.ranks, strict=True)
        if each.count and not each.unseen
    ]
    if not known:
        return {}
    steps = by_number([each for _, each in known])
    told = {**_setup([each for _, each in known]), **_steps(steps), "shares": _shares(each for _, each in known)}
    if traces.world > 1 or len(traces.ranks) > 1:
        told["ranks"] = _ranks(traces, known)
    return told


def by_number(ranks: Iterable[RankSummary]) -> dict[int, list[StepOf]]:
    """The marked steps by their numbers, in order: each as all ranks that recorded it tell it."""
    found: dict[int, list[StepOf]] = {}
    for each in ranks:
        for step in marked(each):
            found.setdefault(step.number, []).append(step)
    return dict(sorted(found.items()))


def marked(told: RankSummary) -> list[StepOf]:
    return [step for step in told.steps if step.number >= 0]


def _setup(ranks: Sequence[RankSummary]) -> dict[str, Any]:
    devices = sorted({each.device for each in ranks if each.device and each.device != NAMELESS})
    return {"setup": {"devices": [{"name": name} for name in devices]}} if devices else {}


def _steps(steps: dict[int, list[StepOf]]) -> dict[str, Any]:
    """What a whole trace without marks lasts is the time of no step."""
    if not steps:
        return {}
    lengths = [median(step.length for step in each) / 1e9 for each in steps.values()]
    phases = dict.fromkeys(phase for each in steps.values() for step in each for phase in step.spent)
    columns = {
        phase: [_rounded(median(step.spent.get(phase, 0) for step in each) / 1e9) for each in steps.values()]
        for phase in phases
    }
    return {"steps": len(steps), "step_time": _time(lengths), "timeline": {"step": list(steps), **columns}}


def _time(seconds: Sequence[float]) -> dict[str, Any]:
    ordered = sorted(seconds)
    shares = {"median": 0.5, "p10": 0.1, "p90": 0.9}
    return {
        **{name: quantile(ordered, share) for name, share in shares.items()},
        "interval": list(interval_of_median(ordered)),
    }


def _shares(ranks: Iterable[RankSummary]) -> dict[str, float]:
    known = list(ranks)
    whole = max(sum(each.length for each in known), 1)
    phases = dict.fromkeys(phase for each in known for phase in each.total)
    return {phase: sum(each.total.get(phase, 0) for each in known) / whole for phase in phases}


def _ranks(traces: Traces, known: Sequence[tuple[int, RankSummary]]) -> dict[str, Any]:
    """As of a run: each rank, and by phase a row for each in a heat map."""
    rows = [_row(traces, number, each) for number, each in known]
    told = laid(rows, lambda index: _track(known[index][1]), 1)
    for row in told["each"]:
        row["differs"] = row["differs"] if row["steps"] >= COMPARED else {}
    residual = traces.clocks.residual
    late = {"late": {"clock_residual": residual / 1e9}} if residual is not None else {}
    return {"world_size": traces.world, **told, **late}


def _row(traces: Traces, number: int, told: RankSummary) -> dict[str, Any]:
    steps = sorted(step.length / 1e9 for step in marked(told))
    late = [each.late(number) / 1e9 for each in traces.arrivals if number in each.begins]
    return {
        "rank": number,
        "steps": len(steps),
        **({"step_time": {"median": quantile(steps, 0.5)}} if steps else {}),
        "shares": _shares((told,)),
        **({"late": median(late)} if late else {}),
        "host": told.host,
        "device": told.device,
    }


def _track(told: RankSummary) -> Track:
    steps = marked(told)
    phases = dict.fromkeys(phase for step in steps for phase in step.spent)
    seconds = {phase: [step.spent.get(phase, 0) / 1e9 for step in steps] for phase in phases}
    return [step.number for step in steps], seconds


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.4g}")
