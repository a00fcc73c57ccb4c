"""What a record says about steps that take ever longer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.job.events import Hooks, Loader, Stacks, Step
from torchtriage.examine.run.measures.figures import PHASES
from torchtriage.examine.run.reader.unseen import world_size
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.series import trend
from torchtriage.examine.run.series.quantiles import own_seconds
from torchtriage.specialists.performance_profiling.probes.events import Work
from torchtriage.specialists.performance_profiling.readings.lines import calling, dominating

ENOUGH_STEPS = 50
PARTS = 6  # of the run, each of which is slower than the last but one before it
BOUND = 1.5  # progressive-slowdown.md defends it
LEAST = 0.0001  # seconds of a step, below which there is nothing to compare
QUIET, SMOOTH = 5, 9  # neighbouring steps, some of which a busy machine disturbs; half of which it may
MODEL = ("forward", "backward", "optimizer")
TOO_FAST = 4.0  # times the usual speed of the model, above which nothing is concluded from it
SEEN = 1.25  # times as long, in wall time, where CPU time shows the growth
STEADY = 0.2  # of the slope of the whole run, at least, in each third
FLOOR = 0.001  # seconds by which a step grows over the run, at least
ALIKE = 0.25  # of the growth of the whole step, at most, in the parts that stay as they were
REST = 0.02, 0.0001  # share of the step, and seconds, that such parts take up at least
MORE = 1.1  # times as much work, from which more time is no wonder
HOOKS = 16  # on one module, which have a page of their own


@detector("run/progressive-slowdown", timed=True)
def progressive_slowdown(record: RankRecord) -> Iterator[Sighting]:
    """A step takes longer the more steps there have been, with the same work."""
    rows = [row for row in record.steps if row.seconds]
    if len(rows) < ENOUGH_STEPS:
        return
    steps, columns = np.array([row.step for row in rows], dtype=float), _columns(rows)
    times, unit = _growing(steps, columns, _own(record, rows), alone=world_size([record]) < 2)
    if times is None:
        return
    span = float(steps[-1] - steps[0])
    first, (slope, spread) = max(_median(times, 0), LEAST), trend.slope(steps, times)
    said = f"a step takes {_ms(_median(times, 0))} {unit} and {_ms(_median(times, -1))} at the end of {len(rows)} steps"
    if _more_work(record, rows, said) or any(event.alive >= HOOKS for event in record.all(Hooks)):
        return  # hooks that pile up have a page of their own
    phase, told = _phase(rows, said)
    places, line = _lines(record, phase, float(steps[-1]))
    low, high = (1 + each * span / first for each in spread)
    for number, place in enumerate(places):
        fact = "this is under way for most of that time too" if number else f"{said}{told}{line}"
        yield Sighting(place, fact, 1 + slope * span / first, "times as long", (low, high))


def _own(record: RankRecord, rows: Sequence[Step]) -> tuple[str, ...]:
    """The phases besides the model that are this thread's own work: no wait for a device or for workers."""
    if any(row.allocated for row in rows):
        return ()
    return ("other",) if any(loader.num_workers for loader in record.all(Loader)) else ("other", "data")


def _growing(steps: Any, columns: dict[str, Any], own: Sequence[str], *, alone: bool) -> tuple[Any, str]:
    """The times that grow, and what they are; None where none do. ALONE: it waits for no other ranks.

    CPU time, which other processes disturb least; wall time, unless other ranks may take it or it is waiting for a CPU
    that grows; or one of its OWN parts, as it is while nobody else has the CPU, or against what the model takes at the
    time: a busy machine slows both down. Such a part counts where a step takes longer in all, too.
    """
    wall, worked = columns["step"], columns["cpu"]
    parts = [each for phase in own for each in _freed(columns, phase)]
    if (_seen(wall) or any(map(_seen, parts))) and _grows(steps, worked):
        return worked, "of CPU time at first"
    if (
        alone
        and _seen(wall)
        and _rises(steps, columns["free"])
        and any(_grows(steps, times) for times in (wall, _quiet(wall)))
    ):
        return wall, "at first"
    if any(_rises(steps, times) for times in (wall, worked)):
        for times in parts:
            if _seen(times) and _grows(steps, times):
                return times, "at first, other processes aside,"
    return None, ""


def _grows(steps: Any, times: Any) -> bool:
    """Whether TIMES rise to the end: from each sixth of the run to the next but one, and no third of it is surely
    level.
    """
    slope, _ = trend.slope(steps, times)
    thirds = zip(np.array_split(steps, 3), np.array_split(times, 3), strict=True)
    if not _rises(steps, times) or min(trend.slope(*third)[1][1] for third in thirds) < STEADY * slope:
        return False
    medians = [_median(times, part) for part in range(PARTS)]
    return all(before < after for before, after in zip(medians, medians[2:], strict=False))


def _rises(steps: Any, times: Any) -> bool:
    """Whether TIMES rise by half of what they were at the start."""
    return float(trend.slope(steps, times)[0] * (steps[-1] - steps[0])) >= max(FLOOR, (BOUND - 1) * _median(times, 0))


def _seen(times: Any) -> bool:
    return _least(times, -1) >= SEEN * _least(times, 0)


def _freed(columns: dict[str, Any], phase: str) -> Iterator[Any]:
    """What a step takes if all of it but PHASE takes what it takes at the median: PHASE at its shortest, and at the
    speed that the model has at the time.
    """
    rest = float(np.median(columns["step"] - columns[phase]))
    yield rest + _quiet(columns[phase])
    model = _smooth(sum(columns[name] for name in MODEL))
    usual = float(np.median(model))
    if usual >= max(REST[0] * float(np.median(columns["step"])), REST[1]):
        yield rest + _smooth(columns[phase]) * usual / np.maximum(model, usual / TOO_FAST)


def _smooth(times: Any) -> Any:
    return np.median(_neighbours(times, SMOOTH), axis=1)


def _quiet(times: Any) -> Any:
    """What the shortest of some neighbouring steps takes: while nobody else has the CPU."""
    return _neighbours(times, QUIET).min(axis=1)


def _neighbours(times: Any, number: int) -> Any:
    return np.lib.stride_tricks.sliding_window_view(np.pad(times, number // 2, mode="edge"), number)


def _median(values: Any, part: int) -> float:
    return float(np.median(np.array_split(values, PARTS)[part]))


def _least(values: Any, part: int) -> float:
    """The lowest decile: what a step takes while no other process is in its way."""
    return float(np.quantile(np.array_split(values, PARTS)[part], 0.1))


def _more_work(record: RankRecord, rows: Sequence[Step], said: str) -> bool:
    """Whether later steps are given more to do; raises CannotSee where nothing tells what goes into a step."""
    for count in ("batches", "forwards", "backwards"):
        counts = [getattr(row, count) for row in rows]
        if _mean(counts[-len(counts) // 3 :]) > MORE * _mean(counts[: len(counts) // 3]):
            return True
    begin, third = rows[0].step, (rows[-1].step - rows[0].step) / 3
    told = [event for event in record.recent(Work) if event.inputs or event.batches]
    early = [event for event in told if event.since <= begin + third]
    late = [event for event in told if (event.since + event.step) / 2 >= begin + 2 * third]
    if not early or not late:
        raise CannotSee(
            f"{said}, but how much goes into a step was not seen at the start and at the end of the run",
            "Compare the shapes of an early and a late batch: longer inputs take longer.",
        )
    sizes = ("inputs", "batches", "parameters", "trainable")
    means = [[_mean([getattr(each, name) for each in part]) for name in sizes] for part in (early, late)]
    return any(after > MORE * before for before, after in zip(*means, strict=True))


def _phase(rows: Sequence[Step], said: str) -> tuple[str | None, str]:
    """The phase that grows most, and how. On a device phases are times of the host and tell nothing.

    A phase that stays as it was must show that the machine does; raises CannotSee where there is none.
    """
    if any(row.allocated for row in rows):
        return None, ""
    columns = _columns(rows)
    before, after = _least(columns["step"], 0), _least(columns["step"], -1)
    ends = {name: (_least(columns[name], 0), _least(columns[name], -1)) for name in (*PHASES, "other")}
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


def _columns(rows: Sequence[Step]) -> dict[str, Any]:
    """Seconds by phase, of the whole step, of the thread's CPU, and of the step without the wait for a free CPU: all
    without the probes, which have the same share of the CPU time as of the wall time.
    """
    told = {phase: np.array([row.spent(phase) for row in rows]) for phase in PHASES}
    step = np.array([own_seconds(row) for row in rows])
    worked = np.array([row.cpu * own_seconds(row) / row.seconds for row in rows])
    free = np.maximum(step - np.array([row.queued for row in rows]), 0.0)
    other = np.maximum(step - sum(told.values()), 0.0)
    return {**told, "other": other, "step": step, "cpu": worked, "free": free}


def _lines(record: RankRecord, phase: str | None, last: float) -> tuple[list[Place], str]:
    """The line in which the growing phase spent most of its time, in the later part of the run, and those that call
    it there.
    """
    told = [event for event in record.recent(Stacks) if event.since >= last / 8]
    line = dominating(told, phase)
    lines = [(line.path, line.number)] if line is not None else []
    places = [
        Place(path=path, line=at, rank=record.rank) for path, at in dict.fromkeys([*lines, *calling(told, phase)])
    ]
    return places or [Place(rank=record.rank)], f"; {line.said}" if line is not None else ""


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"
