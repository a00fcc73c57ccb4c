"""How much of the pace of N single processes N ranks reach: the job held against its own case on one process."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from torchtriage.core.case import Case
from torchtriage.core.errors import USAGE, TriageError
from torchtriage.core.fault import Severity
from torchtriage.core.plain import number, within
from torchtriage.examine.run.job.events import Setup
from torchtriage.examine.run.reader import load
from torchtriage.examine.run.record import RankRecord, RunRecord
from torchtriage.examine.run.series.quantiles import own_seconds, quantile

NAME = "baseline.json"
COMPUTES = "compute-bound"


def noted(given: Path) -> dict[str, Any]:
    """What the case of one process, GIVEN as its case.json or its folder, tells of the job: its pace in samples a
    second, the size of its model, whether it computes most of its time, and the faults that were found in it.

    Raises TriageError where that is no case of one process, or where it does not tell how many samples a step has.
    """
    path = given / "case.json" if given.is_dir() else given
    try:
        case = Case.decode(path.read_bytes(), str(path))
    except OSError as error:
        raise _useless(path, f"cannot be read: {error.strerror}") from error
    if (world := within(case.measurements, "ranks", "world_size")) != 1:
        raise _useless(path, f"it is the case of {world} processes" if world else "it is no case of a run")
    found = pace(load.read(path.parent)) if list(path.parent.glob("rank*.jsonl")) else _pace_told(case.measurements)
    if not found:
        raise _useless(path, "it does not tell how many samples a step had")
    loud = [finding.fault.slug for finding in case.findings if finding.fault.severity is not Severity.INFO]
    return {
        "samples_per_second": found,
        "parameters": _parameters(case.measurements),
        "computes": COMPUTES in case.shown,
        "found": sorted(set(loud)),
    }


def keep(told: dict[str, Any], folder: Path) -> None:
    """Beside the record of the job, so that it can be judged anew; a full disk takes it away, and nothing else."""
    with suppress(OSError):
        (folder / NAME).write_text(json.dumps(told) + "\n", encoding="utf-8")


def pace(record: RunRecord) -> float | None:
    """Samples a second of all ranks together, over their steady steps; None where a rank does not tell."""
    paces = [_pace(rank) for rank in record.ranks]
    return sum(each for each in paces if each) if paces and all(paces) else None


def scaling(record: RunRecord) -> dict[str, Any] | None:
    """The figures of the interface; None without a baseline, or with that of another model."""
    told, together = record.baseline, pace(record)
    alone = number(told.get("samples_per_second"))
    if not alone or not together or len(record.ranks) < 2:
        return None
    size = told.get("parameters")
    if size and size != _size(record.ranks[0]):
        return None
    ranks = len(record.ranks)
    return {
        "efficiency": together / (ranks * alone),
        "ranks": ranks,
        "samples_per_second": together,
        "baseline_samples_per_second": alone,
    }


def _pace(record: RankRecord) -> float | None:
    setup = record.first(Setup) or Setup()
    steps = [step for step in record.steps if step.seconds]
    if not steps:
        return None
    loaded, given = samples(setup.batch), samples(setup.inputs)
    name, each = ("batches", loaded) if loaded else ("forwards", given)
    counts = sum(step.spent(name) for step in steps) / len(steps)
    step = quantile(sorted(map(own_seconds, steps)), 0.5)
    return each * counts / step if each and counts and step else None


def _pace_told(measurements: dict[str, Any]) -> float | None:
    """Of a case without its record: one batch for each step."""
    step, each = number(within(measurements, "step_time", "median")), samples(within(measurements, "setup", "batch"))
    return each / step if each and step else None


def samples(shapes: Any) -> int:
    """The first length of the first tensor of a batch; 0 where there is none."""
    if isinstance(shapes, dict) and "shape" in shapes:
        shape = shapes["shape"]
        return shape[0] if shape and isinstance(shape[0], int) else 0
    inner = shapes.values() if isinstance(shapes, dict) else shapes if isinstance(shapes, list) else ()
    return next((found for each in inner if (found := samples(each))), 0)


def _parameters(measurements: dict[str, Any]) -> int:
    by_dtype = within(measurements, "setup", "parameters")
    return int(sum(number(each) or 0 for each in by_dtype.values())) if isinstance(by_dtype, dict) else 0


def _size(record: RankRecord) -> int:
    setup = record.first(Setup)
    return int(sum((setup.models[0].get("parameters") or {}).values())) if setup is not None and setup.models else 0


def _useless(path: Path, what: str) -> TriageError:
    return TriageError(
        f"no baseline: {what}",
        str(path),
        "Give the case.json of the same job, run by `torchtriage run` on one process, or its folder.",
        USAGE,
    )
