"""What a record says about steps that take ever longer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run import trend
from torchtriage.examine.run.measure import PHASES, own_seconds
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.performance_profiling.readings.lines import dominating

ENOUGH_STEPS = 60
PARTS = 6  # of the run, each of which is slower than the last but one before it
BOUND = 1.5  # progressive-slowdown.md defends it
LEAST = 0.0001  # seconds of a step, below which there is nothing to compare
SEEN = 1.25  # times as long, in wall time, where CPU time shows the growth
STEADY = 0.2  # of the slope of the whole run, at least, in each third
FLOOR = 0.001  # seconds by which a step grows over the run, at least
ALIKE = 0.25  # of the growth of the whole step, at most, in the parts that stay as they were
REST = 0.02, 0.0001  # share of the step, and seconds, that such parts take up at least
MORE = 1.1  # times as much work, from which more time is no wonder
HOOKS = 16  # on one module, which have a page of their own


@detector("run/progressive-slowdown")
def progressive_slowdown(record: RankRecord) -> Iterator[Sighting]:
    """A step takes longer the more steps there have been, with the same work."""
    rows = [row for row in record.steps if row.get("seconds")]
    if len(rows) < ENOUGH_STEPS:
        return
    steps = np.array([row["step"] for row in rows], dtype=float)
    wall, worked = _columns(rows)["step"], _columns(rows)["cpu"]
    computed = _grows(steps, worked)
    if not (computed or _grows(steps, wall)) or _least(wall, -1) < SEEN * _least(wall, 0):
        return
    times, span = worked if computed else wall, float(steps[-1] - steps[0])
    first, (slope, spread) = max(_median(times, 0), LEAST), trend.slope(steps, times)
    unit = "of CPU time at first" if computed else "at first"
    said = f"a step takes {_ms(_median(times, 0))} {unit} and {_ms(_median(times, -1))} at the end of {len(rows)} steps"
    if _more_work(record, rows, said) or any(event.get("alive", 0) >= HOOKS for event in record.all("hooks")):
        return  # hooks that pile up have a page of their own
    phase, told = _phase(rows, said)
    place, line = _line(record, phase, float(steps[-1]))
    low, high = (1 + each * span / first for each in spread)
    yield Sighting(place, f"{said}{told}{line}", 1 + slope * span / first, "times as long", (low, high))


def _grows(steps: Any, times: Any) -> bool:
    """Whether TIMES rise to the end, by half of what they were at the start: from each sixth of the run to the next
    but one, and no third of it is surely level.
    """
    slope, _ = trend.slope(steps, times)
    if slope * (steps[-1] - steps[0]) < max(FLOOR, (BOUND - 1) * _median(times, 0)):
        return False
    thirds = zip(np.array_split(steps, 3), np.array_split(times, 3), strict=True)
    if min(trend.slope(*third)[1][1] for third in thirds) < STEADY * slope:
        return False
    medians = [_median(times, part) for part in range(PARTS)]
    return all(before < after for before, after in zip(medians, medians[2:], strict=False))


def _median(values: Any, part: int) -> float:
    return float(np.median(np.array_split(values, PARTS)[part]))


def _least(values: Any, part: int) -> float:
    """The lowest decile: what a step takes while no other process is in its way."""
    return float(np.quantile(np.array_split(values, PARTS)[part], 0.1))


def _more_work(record: RankRecord, rows: Sequence[dict[str, Any]], said: str) -> bool:
    """Whether later steps are given more to do; raises CannotSee where nothing tells what goes into a step."""
    for count in ("batches", "forwards", "backwards"):
        counts = [row.get(count) or 0 for row in rows]
        if _mean(counts[-len(counts) // 3 :]) > MORE * _mean(counts[: len(counts) // 3]):
            return True
    begin, third = rows[0]["step"], (rows[-1]["step"] - rows[0]["step"]) / 3
    told = [event for event in _since_numbered(record, "work") if event["inputs"] or event["batches"]]
    early = [event for event in told if event["since"] <= begin + third]
    late = [event for event in told if (event["since"] + event["step"]) / 2 >= begin + 2 * third]
    if not early or not late:
        raise CannotSee(
            f"{said}, but how much goes into a step was not seen at the start and at the end of the run",
            "Compare the shapes of an early and a late batch: longer inputs take longer.",
        )
    sizes = ("inputs", "batches", "parameters", "trainable")
    return any(_mean([e[name] for e in late]) > MORE * _mean([e[name] for e in early]) for name in sizes)


def _phase(rows: Sequence[dict[str, Any]], said: str) -> tuple[str | None, str]:
    """The phase that grows most, and how. On a device phases are times of the host and tell nothing.

    A phase that stays as it was must show that the machine does; raises CannotSee where there is none.
    """
    if any(row.get("allocated") for row in rows):
        return None, ""
    columns = _columns(rows)
    ends = {name: (_least(values, 0), _least(values, -1)) for name, values in columns.items()}
    (before, after), _ = ends.pop("step"), ends.pop("cpu")
    bound = 1 + ALIKE * (after / before - 1)
    level = sum(first for first, last in ends.values() if first and last < bound * first)
    if level < max(REST[0] * before, REST[1]):
        raise CannotSee(
            f"{said}, but every part of it alike: a machine that is shared, hot or short of memory does that too",
            "Run it again on a machine that does nothing else: what is in the code stays.",
        )
    name = max(ends, key=lambda phase: ends[phase][1] - ends[phase][0])
    words = {"data": "the wait for data", "other": "what is in no phase"}
    return name, f", and it is {words.get(name, name)} that grows"


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Seconds by phase, of the whole step, and of the thread's CPU: without the probes, which have the same share of
    the CPU time as of the wall time.
    """
    told = {phase: np.array([float(row.get(phase) or 0) for row in rows]) for phase in PHASES}
    step = np.array([own_seconds(row) for row in rows])
    worked = np.array([float(row.get("cpu") or 0) * own_seconds(row) / row["seconds"] for row in rows])
    other = np.maximum(step - sum(told.values()), 0.0)
    return {**told, "other": other, "step": step, "cpu": worked}


def _line(record: RankRecord, phase: str | None, last: float) -> tuple[Place, str]:
    """The line in which the growing phase spent most of its time, in the later part of the run."""
    told = [event for event in _since_numbered(record, "stacks") if event["since"] >= last / 8]
    line = dominating(told, phase)
    if line is None:
        return Place(rank=record.rank), ""
    return Place(path=line.path, line=line.number, rank=record.rank), f"; {line.said}"


def _since_numbered(record: RankRecord, kind: str) -> list[dict[str, Any]]:
    """The events of KIND since the steps were last numbered from 0."""
    last = max((at for at, event in enumerate(record.events) if event.get("kind") == "clock"), default=-1)
    return [event for event in record.events[last + 1 :] if event.get("kind") == kind]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"
