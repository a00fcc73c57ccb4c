"""The windows of time into which a trace is taken apart: its steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from torchtriage.examine.artefact.trace import words
from torchtriage.examine.artefact.trace.events import NONE, Events, Numbers

APART = 0.2
"""Of a step, between its end and the next one's begin, that still belongs to it."""


@dataclass(frozen=True)
class Steps:
    """Windows in order; numbers as the profiler counts, -1 for the one window of a trace without steps.

    asked: the begin of each on the host, which runs ahead of its device. begin, end: where its work is done.
    """

    number: Numbers
    asked: Numbers
    until: Numbers
    begin: Numbers
    end: Numbers

    def first(self, count: int) -> Steps:
        """The first COUNT of them, where it is not 0."""
        return Steps(*(each[: count or None] for each in (self.number, self.asked, self.until, self.begin, self.end)))

    def of(self, times: Numbers) -> NDArray[np.intp]:
        """The step to which what the host asked for at TIMES belongs, counted from 0; -1 for none."""
        if not len(self.asked):
            return np.full(len(times), -1)
        index = np.searchsorted(self.asked, times, side="right") - 1
        return np.where((index >= 0) & (times < self.until[np.maximum(index, 0)]), index, -1)


def steps(events: Events, work: NDArray[np.intp], launched: Numbers) -> Steps:
    """From the begin of one step to that of the next; for a device not before all earlier WORK is done.

    LAUNCHED: when the host asked for each row of WORK; NONE where that is not told, and its own begin counts.
    """
    marks = events.named(events.of(words.MARK), words.STEP.match)
    if not len(marks):
        return _one(events, work)
    number, begin, end = _marked(events, marks)
    asked_for = np.where(launched == NONE, events.start[work], launched)
    until = _until(number, begin, end)
    until[-1] = max(int(until[-1]), int(asked_for.max(initial=0)) + 1)  # what came after belongs to the last one
    starts = np.maximum(begin, _done(events.end[work], asked_for, begin))
    ends = np.maximum(until, _done(events.end[work], asked_for, until))
    starts[0], ends[-1] = begin[0], max(int(end[-1]), int(events.end[work].max(initial=0)))
    ends[:-1] = np.minimum(ends[:-1], starts[1:])
    return Steps(number, begin, until, starts, ends)


def _marked(events: Events, marks: NDArray[np.intp]) -> tuple[Numbers, Numbers, Numbers]:
    """Number, begin and end of each step on the host; a mark within another one is none."""
    numbers = np.array([_number(events.names[int(row)]) for row in events.name[marks]], np.int64)
    order = np.argsort(events.start[marks], kind="stable")
    number, begin, end = numbers[order], events.start[marks][order], events.end[marks][order]
    fresh = np.concatenate(([True], begin[1:] >= np.maximum.accumulate(end)[:-1]))
    return number[fresh], begin[fresh], end[fresh]


def _until(number: Numbers, begin: Numbers, end: Numbers) -> Numbers:
    """Where each step ends on the host: at the next one, if that is its neighbour."""
    following = np.concatenate((begin[1:], end[-1:]))
    joined = np.concatenate((number[1:] == number[:-1] + 1, [False]))
    joined[:-1] &= following[:-1] - end[:-1] <= APART * (end[:-1] - begin[:-1])
    return np.where(joined, following, end)


def _done(ends: Numbers, asked: Numbers, times: Numbers) -> Numbers:
    """When all work was done, of that which ended at ENDS, that had been asked for before each of TIMES; 0 for none."""
    order = np.argsort(asked, kind="stable")
    reached = np.concatenate(([0], np.maximum.accumulate(ends[order])))
    found: Numbers = reached[np.searchsorted(asked[order], times, side="left")]
    return found


def _number(name: str) -> int:
    found = words.STEP.match(name)
    return int(found[1]) if found else -1


def _one(events: Events, work: NDArray[np.intp]) -> Steps:
    rows = work if len(work) else events.of(words.OPERATOR)
    if not len(rows):
        nothing = np.zeros(0, np.int64)
        return Steps(nothing, nothing, nothing, nothing, nothing)
    begin, end = events.start[rows].min(keepdims=True), events.end[rows].max(keepdims=True)
    first = np.array([np.iinfo(np.int64).min])
    return Steps(np.array([-1]), first, end, begin, end)
