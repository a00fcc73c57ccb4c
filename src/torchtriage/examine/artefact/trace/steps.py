"""The windows of time into which a trace is taken apart: its steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchtriage.examine.artefact.trace import words
from torchtriage.examine.artefact.trace.events import Events, Numbers

APART = 0.2
"""Of a step, between its end and the next one's begin, that still belongs to it."""


@dataclass(frozen=True)
class Steps:
    """Disjoint windows in order; numbers as the profiler counts, -1 for the one window of a trace without steps."""

    number: Numbers
    begin: Numbers
    end: Numbers


def steps(events: Events, work: NDArray[np.intp]) -> Steps:
    """From the begin of one step to the begin of the next; the last ends with the WORK that it left to the device."""
    marks = events.named(events.of(words.MARK), words.STEP.match)
    if not len(marks):
        return _one(events, work)
    numbers = np.array([_number(events.names[name]) for name in events.name[marks].tolist()], np.int64)
    return windows(numbers, events.start[marks], events.end[marks], int(events.end[work].max(initial=0)))


def windows(number: Numbers, begin: Numbers, end: Numbers, last: int) -> Steps:
    """Steps from the marks in a trace whose work on the device ends at LAST; a second mark of one begin is left out."""
    order = np.argsort(begin, kind="stable")
    number, begin, end = number[order], begin[order], end[order]
    fresh = np.concatenate(([True], begin[1:] >= np.maximum.accumulate(end)[:-1]))
    number, begin, end = number[fresh], begin[fresh], end[fresh]
    following = np.concatenate((begin[1:], [max(int(end[-1]), last)]))
    joined = np.concatenate((number[1:] == number[:-1] + 1, [True]))
    joined[:-1] &= following[:-1] - end[:-1] <= APART * (end[:-1] - begin[:-1])
    return Steps(number, begin, np.where(joined, following, end))


def _number(name: str) -> int:
    found = words.STEP.match(name)
    return int(found[1]) if found else -1


def _one(events: Events, work: NDArray[np.intp]) -> Steps:
    rows = work if len(work) else events.of(words.OPERATOR)
    if not len(rows):
        nothing = np.zeros(0, np.int64)
        return Steps(nothing, nothing, nothing)
    begin, end = int(events.start[rows].min()), int(events.end[rows].max())
    return Steps(np.array([-1]), np.array([begin]), np.array([end]))
