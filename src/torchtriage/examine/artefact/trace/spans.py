"""Spans of time as two columns, begins and ends in nanoseconds, disjoint and in order."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from torchtriage.examine.artefact.trace.events import Numbers

Spans: TypeAlias = tuple[Numbers, Numbers]


def union(starts: Numbers, ends: Numbers) -> Spans:
    """What is covered by any of the spans from STARTS to ENDS."""
    if not len(starts):
        return starts, ends
    order = np.argsort(starts, kind="stable")
    begins, reached = starts[order], np.maximum.accumulate(ends[order])
    fresh = np.flatnonzero(begins[1:] > reached[:-1]) + 1
    first = np.concatenate(([0], fresh))
    last = np.concatenate((fresh - 1, [len(begins) - 1]))
    return begins[first], reached[last]


def both(left: Spans, right: Spans) -> Spans:
    """What either covers."""
    return union(np.concatenate((left[0], right[0])), np.concatenate((left[1], right[1])))


def holes(spans: Spans, begin: int, end: int) -> Spans:
    """What SPANS leave open between BEGIN and END."""
    starts = np.concatenate(([begin], np.clip(spans[1], begin, end)))
    ends = np.concatenate((np.clip(spans[0], begin, end), [end]))
    kept = ends > starts
    return starts[kept], ends[kept]


def covered(spans: Spans, begins: Numbers, ends: Numbers) -> Numbers:
    """How much of each window from BEGINS to ENDS the SPANS cover."""
    within: Numbers = np.maximum(_before(spans, ends) - _before(spans, begins), 0)
    return within


def _before(spans: Spans, times: Numbers) -> Numbers:
    """How much of SPANS lies before each of TIMES."""
    if not len(spans[0]):
        return np.zeros(len(times), np.int64)
    sums = np.concatenate(([0], np.cumsum(spans[1] - spans[0])))
    index = np.searchsorted(spans[0], times, side="right")
    last = np.maximum(index - 1, 0)
    part = np.minimum(times, spans[1][last]) - spans[0][last]
    told: Numbers = np.where(index > 0, sums[last] + part, 0)
    return told


def at(spans: Spans, times: Numbers) -> NDArray[np.intp]:
    """The span in which each of TIMES lies, its end counted in; -1 where there is none."""
    if not len(spans[0]):
        return np.full(len(times), -1)
    index = np.searchsorted(spans[0], times, side="right") - 1
    inside = (index >= 0) & (spans[1][np.maximum(index, 0)] >= times)
    return np.where(inside, index, -1)
