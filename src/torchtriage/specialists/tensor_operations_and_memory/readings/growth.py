"""What a record says about memory that grows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.job.events import Loader
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.examine.run.series import trend
from torchtriage.specialists.tensor_operations_and_memory.probes.events import Container, Host, SecondEpoch

ENOUGH_STEPS = 30
FLOOR = 32 << 20  # bytes: what allocators and lazily loaded code may take after warm-up; memory-growth.md defends it
STEADY = 0.6  # of the slope of the steepest third of the run, at least, in each of the others
NAMED = 0.4  # the same where a container accounts for it: on a busy machine malloc gives memory back in other places
LATE = (0.0, 1 / 3, 1 / 2, 3 / 4)  # of the run, after which growth may have begun
LEVEL = 0.25  # of its slope, at most, is what memory had before it began
LONGER = 1.25  # times as long, or as much
DEVICE = "allocated device"
GRID = 60  # readings of the host that are compared, evenly spread
WARM = 0.1  # of them that are left out at the start
ANEW = 0.5  # of private growth, at least, is that of virtual memory in each third of the run
Growth = tuple[float, tuple[float, float], float, float]  # slope, its interval, bytes gained, first step
ACCOUNTED = 0.25  # of the growth, at least, is what the container's entries take up
MANY = 2  # entries for each sample of the longest loader: more are no cache
WATCHED = 0.5  # of the run, at least, in which the container was followed


@detector("run/memory-growth")
def memory_growth(record: RankRecord) -> Iterator[Sighting]:
    """Memory in use grows with the step number, to the end."""
    name, used = _memory(record)
    steps = np.array([step.step for step in record.steps], dtype=float)
    growth = growth_of(steps, used) or _named_growth(record, steps, used)
    if growth is None:
        return
    slope, spread, total, begin = growth
    said = f"{name} memory grows by {slope / 1024:.0f} KiB per step"
    container, rate = _container(record, begin, float(steps[-1]))
    if name != DEVICE and (container is None or rate * container.bytes < ACCOUNTED * slope):
        if container is None and allocated_anew(record):
            return  # host-memory-growth tells it
        raise CannotSee(
            f"{said}, and no container with a name grows with it to the end: a buffer that was allocated at once and "
            "is being filled, or a file that is mapped, looks the same",
            "Run until such a buffer is full; if it grows on, tracemalloc.take_snapshot() shows Python's share.",
        )
    if container is None and _lengthening(record):
        raise CannotSee(
            f"{said}, and the steps are ever larger: batches that grow on purpose look the same",
            "Run until their size has settled; a leak grows on.",
        )
    if container is not None and _ends(record, container):
        raise CannotSee(
            f"{said} while {container.holder} fills: it has an end, and hides what else may grow",
            "Run until it is full: two epochs and more for a Dataset, more steps than its maxlen for a deque.",
        )
    in_second_epoch(record, said)
    grown = Sighting(
        _place(record, container),
        f"{said}, {total / 2**20:.0f} MiB over {steps[-1] - begin + 1:.0f} steps, to the end"
        f"{_filling(container, rate)}",
        slope / 1024,
        "KiB per step",
        (spread[0] / 1024, spread[1] / 1024),
    )
    yield from further(grown, container.further if container is not None else ())


def growth_of(steps: Any, used: Any, steadiness: float = STEADY) -> Growth | None:
    """The slope with its interval, the bytes gained and the first step, of steady growth; None for any other."""
    if len(steps) < ENOUGH_STEPS:
        return None
    slope, spread = trend.slope(steps, used)
    total = slope * float(steps[-1] - steps[0])
    parts = _thirds(steps, used)
    steady = total >= FLOOR and min(parts) >= steadiness * max(parts)
    return (slope, spread, total, float(steps[0])) if steady else None


def _lengthening(record: RankRecord) -> bool:
    """Whether the steps of the last third of the run are larger than those of the first.

    By what they make and let go, where the peak is risen by later steps, too: a leak lifts peak and rest alike. Else by
    the time they take.
    """
    rows = record.steps
    is_rising = (rows[-1].peak or 0) > (rows[len(rows) // 3].peak or 0)
    sizes = [(row.peak or 0) - (row.allocated or 0) if is_rising else row.seconds for row in rows]
    first, _, last = np.array_split(np.array(sizes, dtype=float), 3)
    return float(np.median(last)) >= LONGER * float(np.median(first))


def _thirds(steps: Any, used: Any) -> list[float]:
    """The slope of each third: a jump in memory is in one of them."""
    return [trend.slope(*part)[0] for part in zip(np.array_split(steps, 3), np.array_split(used, 3), strict=True)]


def _named_growth(record: RankRecord, steps: Any, used: Any) -> Growth | None:
    """Growth that began within the run, or is less steady, where a container with a name grows with it: without one it
    may be a phase.
    """
    for share in LATE:
        first = int(len(steps) * share)
        if (first and first < ENOUGH_STEPS) or len(steps) - first < ENOUGH_STEPS:
            continue
        growth = growth_of(steps[first:], used[first:], STEADY if first else NAMED)
        if growth is not None and (not first or trend.slope(steps[:first], used[:first])[0] <= LEVEL * growth[0]):
            container, rate = _container(record, growth[3], float(steps[-1]))
            if container is None or container.bounded or container.dataset:
                continue
            if rate * container.bytes >= ACCOUNTED * growth[0]:
                return growth
    return None


def _container(record: RankRecord, begin: float, end: float) -> tuple[Container | None, float]:
    """The container that was followed to the end of the run and grew in each third of the time, and its entries per
    step; None when there is none.
    """
    told = record.recent(Container)
    told = [each for each in told if (each.holder, each.since) == (told[-1].holder, told[-1].since)]
    if not told:
        return None, 0.0
    last = told[-1]
    at = [float(last.since), *(float(each.step) for each in told)]
    entries = [float(last.had), *(float(each.entries) for each in told)]
    if at[-1] - at[0] < WATCHED * (end - begin) or end - at[-1] > (end - begin) / 6:
        return None, 0.0
    thirds = np.diff(np.interp(np.linspace(at[0], at[-1], 4), at, entries))
    if min(thirds) <= 0 or min(thirds) < STEADY * max(thirds):
        return None, 0.0
    return last, (entries[-1] - entries[0]) / (at[-1] - at[0])


def _ends(record: RankRecord, container: Container) -> bool:
    """Whether it fills and is full: in a Dataset, unless it has more entries than a cache with one for each sample."""
    samples = [(each.length or 0) * (each.batch_size or 0) for each in record.all(Loader)]
    more = min(samples, default=0) > 0 and container.entries > MANY * max(samples)
    return container.bounded or (container.dataset and not more)


def _place(record: RankRecord, container: Container | None) -> Place:
    if container is None:
        return Place(rank=record.rank)
    path, line = container.path or None, container.line or None
    return Place(path=path, line=line, rank=record.rank, container=container.holder)


def allocated_anew(record: RankRecord) -> Growth | None:
    """Growth of this process's private memory for which it asks the system for ever more: what fills a buffer that
    was allocated at once, or reads a mapped file, does not.
    """
    readings = record.recent(Host)
    private = growth_of(*series(readings, [each.private for each in readings]))
    virtual = series(readings, [each.virtual for each in readings])
    return private if private and min(_thirds(*virtual)) >= ANEW * private[0] else None


def series(readings: Sequence[Host], column: Sequence[int]) -> tuple[Any, Any]:
    """Step numbers and values of readings that are dense at first, as far apart at the start as at the end."""
    steps = np.array([each.step for each in readings], dtype=float)
    values = np.array(column, dtype=float)
    if not len(steps):
        return steps, values
    wanted = np.linspace(steps[0] + WARM * (steps[-1] - steps[0]), steps[-1], GRID)
    chosen = np.unique(np.searchsorted(steps, wanted))
    return steps[chosen], values[chosen]


def in_second_epoch(record: RankRecord, said: str) -> None:
    """Raises CannotSee unless the growth was seen in a loader's second epoch, or there is no loader."""
    rows = record.every_step
    if not any(row.batches for row in rows):
        return
    began = record.first(SecondEpoch)
    if began is None or rows[-1].step - began.step < (rows[-1].step - rows[0].step) / 3:
        raise CannotSee(
            f"{said}, but the loader is still in its first epoch or was for most of the run: a cache that is being "
            "filled looks the same",
            "Run two epochs or more.",
        )


def _memory(record: RankRecord) -> tuple[str, Any]:
    steps = record.steps
    if len(steps) < ENOUGH_STEPS:
        raise CannotSee(
            f"{len(steps)} steps after warm-up, {ENOUGH_STEPS} are needed", "Let the job run for 50 steps or more."
        )
    columns = {DEVICE: [step.allocated for step in steps], "resident": [step.rss for step in steps]}
    for name, used in columns.items():
        if all(used):
            return name, np.array(used, dtype=float)
    raise CannotSee("the system does not tell how much memory the process holds", "Run the job on Linux.")


def _filling(container: Container | None, rate: float) -> str:
    if container is None:
        return "; no container that is alive grew with it"
    return f"; {container.type} {container.holder} grew by {rate:.1f} entries per step ({container.holds})"
