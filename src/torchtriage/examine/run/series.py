"""Figures of a series of steps: quantiles, an interval for the median, thinning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

T = TypeVar("T")
POINTS = 200  # of a thinned series


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


def even(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of rows by `step` that are thinned to the end, those as far apart as the last ones: no time counts for more."""
    steps = [row.get("step") or 0 for row in rows]
    widest = max((after - before for before, after in pairwise(steps)), default=1)
    stride = 10 ** (len(str(max(widest, 1))) - 1)  # the record's law of thinning goes by powers of ten
    return [row for step, row in zip(steps, rows, strict=True) if step % stride == 0]


def own_seconds(row: dict[str, Any]) -> float:
    """What a step took without the probes."""
    return max(float(row.get("seconds") or 0) - float(row.get("probes") or 0), 0.0)


def number(value: float) -> str:
    """VALUE with three digits, never in powers of ten below a million."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
