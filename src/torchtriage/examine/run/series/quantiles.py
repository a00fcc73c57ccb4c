"""Figures of a series of steps: quantiles, an interval for the median, thinning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import TypeVar

from torchtriage.examine.run.job.events import Step

T = TypeVar("T")
S = TypeVar("S", bound=Step)
POINTS = 200  # of a thinned series
FEWEST = 64  # steps, evenly spaced, that figures are taken from


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which SHARE of the values lie, interpolated; ORDERED is sorted and not empty."""
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def interval_of_median(ordered: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median from order statistics (normal approximation of the binomial)."""
    half = 0.98 * math.sqrt(len(ordered))  # 1.96 / 2
    low = max(math.floor(len(ordered) / 2 - half), 0)
    high = min(math.ceil(len(ordered) / 2 + half), len(ordered) - 1)
    return ordered[low], ordered[high]


def thinned(items: Sequence[T], points: int = POINTS) -> list[T]:
    """At most POINTS items, evenly spaced, the first and the last among them."""
    if len(items) <= points:
        return list(items)
    return [items[round(index * (len(items) - 1) / (points - 1))] for index in range(points)]


def even(steps: Sequence[S]) -> list[S]:
    """Of steps that are recorded ever more rarely, those as far apart as is usual in the second half: no time counts
    for more. But of a run that has just become sparse FEWEST remain, where there are as many.
    """
    whole = steps[-1].step - steps[0].step if steps else 0
    late = [each.step for each in steps if each.step >= steps[-1].step - whole / 2]
    gaps = [after - before for before, after in pairwise(late)]
    stride = max(min(median(gaps or [1]), whole / FEWEST), 1)
    chosen: list[S] = []
    due = math.ceil(steps[0].step / stride) * stride if steps else 0.0
    for each in steps:
        if each.step >= due:
            chosen.append(each)
            due = max(due + stride, each.step - stride)
    return chosen


def own_seconds(step: Step) -> float:
    """What a step took without the probes."""
    return max(step.spent("seconds") - step.spent("probes"), 0.0)


def number(value: float) -> str:
    """VALUE with three digits, never in powers of ten below a million."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
