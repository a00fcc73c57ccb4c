"""The figures of a run, by the names of the interface."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from torchtriage.examine.run.job.events import GradNorm, Setup, Stacks, Start, Step
from torchtriage.examine.run.job.watch.governor import FIRST
from torchtriage.examine.run.measures import hotspots
from torchtriage.examine.run.measures.hotspots import Samples
from torchtriage.examine.run.measures.rehearsal import rehearsal, without_times
from torchtriage.examine.run.measures.scaling import scaling
from torchtriage.examine.run.measures.training import training
from torchtriage.examine.run.ranks.beside import side_by_side
from torchtriage.examine.run.ranks.hung import hung
from torchtriage.examine.run.ranks.looks import divergence
from torchtriage.examine.run.ranks.meetings import Meetings, late, meetings, timed, told_apart
from torchtriage.examine.run.reader.unseen import world_size
from torchtriage.examine.run.record import SETTLED, RankRecord, RunRecord
from torchtriage.examine.run.series.quantiles import even, interval_of_median, own_seconds, quantile, thinned

PHASES = ("data", "transfer", "forward", "backward", "optimizer", "communication", "idle")
ENOUGH_RESTED = 256  # steps without probes, with which the others can be compared


def measurements(record: RunRecord) -> dict[str, Any]:
    """Times in seconds, memory in bytes, shares of the step from 0 to 1; nothing for a run without a record.

    A step's time is the job's own: what the probes took is taken out, and given as `overhead`, over all steps but the
    first, which holds the imports, and as `overhead_later`, over those after the ones that all probes watch. Shares
    are over all steady steps of all ranks, on CUDA over those that were timed on the device; `communication`, which is
    waiting for collectives that nothing hides, and `idle` are 0 where nothing has told them apart. What is in
    `training`, that of the first rank, training.py says. `lines` are those of the user's own code that take most of a
    step of the first rank, each with the share of its function, and `unexplained` what is in no phase and on no line
    that takes a noticeable part. Of a job on a simulated device there is `rehearsal` in place of times and memory.
    """
    told = _measured(record) if record.ranks else {}
    return {**without_times(told), "rehearsal": rehearsal(record)} if record.is_simulated else told


def _measured(record: RunRecord) -> dict[str, Any]:
    first = record.ranks[0]
    steady = [row for rank in record.ranks for row in rank.on_device or told_apart(rank)]
    spent, samples = shares(steady), Samples(first)
    return {
        "setup": _setup(record),
        "steps": first.count,
        "step_time": step_time(first.steps),
        "shares": spent,
        "training": training(first),
        "memory": _memory(first),
        "loss": _series(first, "loss"),
        "grad_norm": thinned([[each.step, each.value] for each in first.all(GradNorm) if each.value is not None]),
        "scale": _series(first, "scale"),
        "timeline": timeline(told_apart(first)),
        "stacks": stacks(first),
        "lines": lines(samples),
        "unexplained": unexplained(samples, (shares(first.on_device or told_apart(first)) or {}).get("other")),
        "ranks": _ranks(record),
        "overhead": overhead([row for rank in record.ranks for row in rank.every_step[1:] or rank.every_step]),
        "overhead_later": overhead(later([row for rank in record.ranks for row in rank.every_step])),
    }


def cpu_got(rows: Sequence[Step]) -> float:
    """The share of the CPU time it wanted that the thread that trains got, from 0 to 1."""
    cpu, queued = (sum(row.spent(name) for row in rows) for name in ("cpu", "queued"))
    return cpu / (cpu + queued) if cpu else 1.0


def step_time(rows: Sequence[Step]) -> dict[str, Any] | None:
    """Median, 10th and 90th percentile, and the 95 % interval of the median; None without a steady step."""
    times = sorted(own_seconds(row) for row in rows)
    if not times:
        return None
    return {
        "median": quantile(times, 0.5),
        "p10": quantile(times, 0.1),
        "p90": quantile(times, 0.9),
        "interval": list(interval_of_median(times)),
    }


def shares(rows: Sequence[Step]) -> dict[str, float] | None:
    """The phases' shares of all the time of ROWS, with `other` for the rest, so that they sum to 1."""
    spent = {phase: sum(row.spent(phase) for row in rows) for phase in PHASES}
    whole = max(sum(own_seconds(row) for row in rows), sum(spent.values()))
    if whole <= 0:
        return None
    told = {phase: seconds / whole for phase, seconds in spent.items()}
    return {**told, "other": max(1.0 - sum(told.values()), 0.0)}


def stacks(record: RankRecord) -> dict[str, Any] | None:
    """The user's lines in which the training thread stood most often, in the look with the most samples, with the
    share of those and the phase that they belong to; None where nothing gave reason to look.
    """
    look = max(record.all(Stacks), key=lambda event: event.samples, default=None)
    if look is None or not look.samples:
        return None
    names = ("phase", "path", "line", "function")
    lines = [{**dict(zip(names, each, strict=False)), "share": each[-1] / look.samples} for each in look.lines]
    return {"since": look.since, "samples": look.samples, "lines": lines}


def lines(samples: Samples) -> list[dict[str, Any]]:
    """The lines of the user's own code that take most of a step, at most five, with the interval of their share."""
    if not samples.enough:
        return []
    again = hotspots.evaluation(samples)
    known: list[hotspots.Hotspot] = [*([again] if again else []), *hotspots.lines(samples)]
    of = {(each.path, each.function): each.of.share for each in hotspots.functions(samples, samples.own(), 0.0)}
    return [
        {
            "path": each.path,
            "line": each.line,
            "function": each.function,
            "share": each.of.share,
            "low": each.of.low,
            "high": each.of.high,
            "phase": each.part,
            "samples": each.of.looks,
            "function_share": max(of.get((each.path, each.function), 0.0), each.of.share),
        }
        for each in sorted(known, key=lambda each: -each.of.share)
    ][: hotspots.MOST]


def unexplained(samples: Samples, other: float | None) -> float | None:
    """The share of a step in no phase and on no sampled line that takes a noticeable part; None without a step."""
    return None if other is None else hotspots.unexplained(samples, other)


def timeline(rows: Sequence[Step]) -> dict[str, list[Any]]:
    """Columns of equal length over at most 200 steps: the step, each phase's seconds, and memory in bytes."""
    drawn = thinned(rows)
    return {**phases(drawn), **{name: [getattr(row, name) for row in drawn] for name in ("rss", "allocated")}}


def phases(rows: Sequence[Step]) -> dict[str, list[Any]]:
    """Columns of equal length: the step, and each phase's seconds; `other` is the rest of what the step took."""
    spent: dict[str, list[Any]] = {phase: [row.spent(phase) for row in rows] for phase in PHASES}
    known = [sum(told) for told in zip(*spent.values(), strict=True)]
    rest = [max(own_seconds(row) - told, 0.0) for row, told in zip(rows, known, strict=True)]
    return {"step": [row.step for row in rows], **spent, "other": rest}


def overhead(rows: Sequence[Step]) -> float | None:
    """The share of the probes in the time of ROWS and of the steps that rested among them; None without any.

    It is what they have booked, or what the steps that were watched took longer than those that rested, if that is
    more: code that runs seldom slows down what comes after it, too.
    """
    whole = sum(row.seconds for row in rows)
    if not whole:
        return None
    among = [row for row in rows if row.rested]
    lost = 0.0
    if sum(row.rested for row in among) >= ENOUGH_RESTED:
        usual = median(row.rested_seconds / row.rested for row in among)
        lost = len(among) * (median(row.seconds for row in among) - usual)
    return max(lost, sum(row.probes for row in rows)) / whole


def later(rows: Sequence[Step]) -> list[Step]:
    """The steps after the first ones, which all probes watch and a long job does not notice; none of less than 20."""
    found = [row for row in rows if row.step > FIRST]
    return found if len(found) >= SETTLED else []


def _setup(record: RunRecord) -> dict[str, Any]:
    first = record.ranks[0]
    start, setup = first.first(Start) or Start(), first.first(Setup) or Setup()
    models = list(setup.models)
    launched = {
        name: vars(start).get(name) for name in ("versions", "platform", "cpus", "threads", "devices", "environment")
    }
    return {
        **launched,
        "launch": vars(start).get("argv"),
        "world_size": world_size(record.ranks),
        "models": models,
        "parameters": models[0].get("parameters") if models else None,
        "batch": setup.batch or setup.inputs,
        "optimizer": list(setup.optimizers),
        "precision": {**(setup.precision or {}), "scaler": vars(setup).get("scaled")},
        "loader": list(setup.loaders),
    }


def _memory(record: RankRecord) -> dict[str, Any]:
    """First, last and highest resident bytes after warm-up; on CUDA the allocator's figures too."""
    told: dict[str, Any] = {}
    for name in ("rss", "allocated", "reserved"):
        values = [value for row in record.steps if (value := getattr(row, name)) is not None]
        told[name] = {"first": values[0], "last": values[-1], "highest": max(values)} if values else None
    peaks = [row.peak for row in record.every_step if row.peak is not None]
    told["peak"] = max(peaks) if peaks else None
    return told


def _series(record: RankRecord, name: str) -> list[list[Any]]:
    """[step, value] pairs from the steps, at most 200."""
    known = [row for row in record.every_step if getattr(row, name) is not None]
    return thinned([[row.step, getattr(row, name)] for row in even(known)])


def _ranks(record: RunRecord) -> dict[str, Any]:
    """What a run of one rank says of it is little: the rest stands in the other figures."""
    met, world = meetings(record), world_size(record.ranks)
    each = [_rank(rank, met) for rank in record.ranks]
    if world == 1 and len(each) == 1:
        return {"world_size": world, "each": each}
    known = {
        "late": {"clock_residual": met.residual, "steps": len(met.steps)} if met.all else None,
        "divergence": divergence(record),
        "scaling": scaling(record),
    }
    told = {name: figures for name, figures in known.items() if figures is not None}
    return {"world_size": world, **side_by_side(record.ranks, each, phases), "hang": hung(record), **told}


def _rank(record: RankRecord, met: Meetings) -> dict[str, Any]:
    """`late`: seconds by which the rank usually comes later than the others to a step's first collective."""
    lateness = late(met, record.rank) if met.all else ()
    return {
        "rank": record.rank,
        "steps": record.count,
        "step_time": step_time(record.steps),
        "shares": shares(timed(record)),
        **({"late": median(lateness)} if lateness else {}),
    }
