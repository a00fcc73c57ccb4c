"""Two runs of one job: how long a step took, where its time and the memory went, and what bars a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import Enum
from math import inf, isnan
from typing import Any, TypeAlias

from msgspec import Struct

from torchtriage.core.plain import number, within

MARGIN = 0.1
"""Figures of which one has no interval differ when they do by more than this share of the larger one."""

SMALL, ALIKE = 0.02, 1.5
"""A phase of a smaller share of the step is too short to be judged; phases whose factors differ by more than ALIKE
have not changed together. Two runs of examples/slow_and_unstable.py, one beside three other jobs on two cores:
factors from 4.1 to 5.0."""

Interval: TypeAlias = tuple[float, float]
Pair: TypeAlias = tuple[float | None, float | None]
Table: TypeAlias = dict[str, Any]


class Change(Enum):
    """What became of a figure. SAME: no difference that can be told from chance."""

    SMALLER = "smaller"
    SAME = "same"
    LARGER = "larger"


class Doubt(Struct, frozen=True):
    """What differs between two runs, or is missing, and why that matters.

    bars: whether figures of the two runs must not be held against one another at all.
    """

    what: str
    before: str
    after: str
    why: str
    bars: bool = True


class Timing(Struct, frozen=True):
    """The median time of a step in seconds, and the 95 % intervals of both medians where they are known.

    change, faster: None where the runs are not alike. faster: the first median over the second; faster_interval:
    what that is at least and at most. usual: whether single steps of one run differ by as much: the ranges that hold
    four steps in five meet. Both intervals know nothing of what else a machine had to do during one of the runs.
    """

    before: float
    after: float
    before_interval: Interval | None
    after_interval: Interval | None
    change: Change | None = None
    faster: float | None = None
    faster_interval: Interval | None = None
    usual: bool = False


class Runs(Struct, frozen=True):
    """What two runs measured, before and after; None where it was not measured.

    shares: of the step, from 0 to 1, by phase. memory: the most bytes that were taken, by who counted them.
    """

    timing: Timing | None
    shares: dict[str, Pair]
    memory: dict[str, Pair]
    doubts: tuple[Doubt, ...]

    @property
    def alike(self) -> bool:
        """Whether figures of the two may be held against one another."""
        return not any(doubt.bars for doubt in self.doubts)


def runs(before: Table, after: Table) -> Runs:
    """The measurements of two runs, side by side."""
    doubts = tuple(_doubts(before, after))
    alike = not any(doubt.bars for doubt in doubts)
    return Runs(_timing(before, after, alike), _pairs(before, after, "shares"), _memory(before, after), doubts)


def changed(before: float, after: float, spreads: tuple[Interval | None, Interval | None] = (None, None)) -> Change:
    """Whether AFTER is another figure than BEFORE: their intervals must not meet.

    Where one has no interval, they must also differ by more than MARGIN of the larger one. No number is SAME.
    """
    if isnan(before) or isnan(after) or (None in spreads and not _far(before, after)):
        return Change.SAME
    low, high = spreads[0] or (before, before)
    later_low, later_high = spreads[1] or (after, after)
    if later_high < low:
        return Change.SMALLER
    return Change.LARGER if later_low > high else Change.SAME


def _far(one: float, two: float) -> bool:
    return one != two and abs(one - two) > MARGIN * min(max(abs(one), abs(two)), 1e300)


def _timing(before: Table, after: Table, alike: bool) -> Timing | None:
    one, two = _medians(before, after)
    if not one or not two:
        return None
    spreads = _interval(before, one), _interval(after, two)
    if not alike:
        return Timing(one, two, *spreads)
    told = changed(one, two, spreads)
    return Timing(one, two, *spreads, told, one / two, _faster(*spreads), _meet(before, after))


def _meet(before: Table, after: Table) -> bool:
    """Whether the ranges from the 10th to the 90th percentile meet, as far as they are known."""
    low, later_low = _pair(before, after, "step_time", "p10")
    high, later_high = _pair(before, after, "step_time", "p90")
    if low is None or high is None or later_low is None or later_high is None:
        return False
    return low <= later_high and later_low <= high


def _medians(before: Table, after: Table) -> Pair:
    """Seconds; None for what is no time of a step."""
    one, two = _pair(before, after, "step_time", "median")
    return (one if one and 0 < one < inf else None), (two if two and 0 < two < inf else None)


def _faster(before: Interval | None, after: Interval | None) -> Interval | None:
    return (before[0] / after[1], before[1] / after[0]) if before and after and after[0] > 0 else None


def _interval(measurements: Table, median: float) -> Interval | None:
    ends = within(measurements, "step_time", "interval")
    match [number(end) for end in ends] if isinstance(ends, list | tuple) else []:
        case [float(low), float(high)] if low <= median <= high:
            return low, high
        case _:
            return None


def _memory(before: Table, after: Table) -> dict[str, Pair]:
    places = {name: (name, "highest") for name in ("allocated", "reserved", "rss")} | {"peak": ("peak",)}
    taken = {name: _pair(before, after, "memory", *path) for name, path in places.items()}
    return {name: pair for name, pair in taken.items() if pair != (None, None)}


def _pairs(before: Table, after: Table, name: str) -> dict[str, Pair]:
    """All figures below NAME, in the order in which they stand."""
    tables = [found if isinstance(found := within(each, name), dict) else {} for each in (before, after)]
    pairs = {key: _pair(before, after, name, key) for table in tables for key in table}
    return {key: pair for key, pair in pairs.items() if pair != (None, None)}


def _pair(before: Table, after: Table, *names: str) -> Pair:
    return number(within(before, *names)), number(within(after, *names))


def _doubts(before: Table, after: Table) -> Iterator[Doubt]:
    told = [
        "a run's" if number(within(each, "step_time", "median")) is not None else "none" for each in (before, after)
    ]
    if "none" in told and told[0] == told[1] and all(_memory(each, each) for each in (before, after)):
        return  # of two memory snapshots
    if "none" in told:
        yield Doubt("measurements", told[0], told[1], "Without the figures of two runs only findings can be compared")
        return
    for name, (said, why) in _BARRING.items():
        one, two = (said(within(each, "setup", name)) for each in (before, after))
        if one and two and one != two:
            yield Doubt(name, one, two, why)
    first, later = _pair(before, after, "steps")
    if first is not None and later is not None and changed(first, later) is not Change.SAME:
        why = "What takes many steps to show, or adds up over them, differs with their number"
        yield Doubt("steps", f"{first:.0f}", f"{later:.0f}", why, bars=False)
    yield from _everywhere(before, after)


def _everywhere(before: Table, after: Table) -> Iterator[Doubt]:
    """A change of the time that all phases share: remedies change one or two."""
    one, two = _medians(before, after)
    shares = _pairs(before, after, "shares").values()
    told = [(was, now) for was, now in shares if was and now and min(was, now) >= SMALL]
    if not one or not two or len(told) < 3:
        return
    factors = sorted(now * two / (was * one) for was, now in told)
    if factors[-1] > ALIKE * factors[0] or (factors[0] <= 1 + MARGIN and factors[-1] >= 1 - MARGIN):
        return
    ends = f"Every phase takes {factors[0]:.2f} to {factors[-1]:.2f} times its time"
    why = f"{ends}: another load on the machine does that to an unchanged job, so run both again"
    yield Doubt("load", f"{one:.3g} s", f"{two:.3g} s", why, bars=False)


def _parameters(by_dtype: Any) -> str:
    counts = [count for each in by_dtype.values() if (count := number(each))] if isinstance(by_dtype, dict) else []
    return f"{sum(counts):.0f}" if counts else ""


def _samples(tensors: Any) -> str:
    """The first length of the first tensor: the others may differ from batch to batch of one job."""
    shape = within(tensors[0], "shape") if isinstance(tensors, list | tuple) and tensors else None
    return str(shape[0]) if isinstance(shape, list | tuple) and shape else ""


def _devices(listed: Any) -> str:
    """Empty where the job used the processor only: a device that a remedy has brought to use is no other machine."""
    names = [within(each, "name") for each in listed] if isinstance(listed, list | tuple) else []
    return ", ".join(str(name) for name in names if name)


def _count(value: Any) -> str:
    return "" if number(value) is None else str(value)


_BARRING: dict[str, tuple[Callable[[Any], str], str]] = {
    "parameters": (_parameters, "A model of another size takes another time and other memory for a step"),
    "batch": (_samples, "A batch of another size is another amount of work for a step"),
    "devices": (_devices, "Another device takes another time for the same step"),
    "cpus": (_count, "Another machine takes another time for the same step"),
    "world_size": (_count, "Another number of processes shares the work in another way"),
}
