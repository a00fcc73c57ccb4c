"""What a device did in each window of time, and why it did nothing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from torchtriage.examine.artefact.trace import words
from torchtriage.examine.artefact.trace.events import NONE, Events, Numbers
from torchtriage.examine.artefact.trace.spans import Spans, at, both, covered, holes, union

PHASES = ("compute", "communication", "memcpy", "input", "launch", "sync", "host", "other")
IDLE = PHASES[3:]
PAUSE = 200_000
"""Nanoseconds between two launches above which the host does other work than launching: an operator of torch and its
Python take 5 to 100 microseconds."""
LATENCY = 10_000
"""Nanoseconds that a device takes from one queued kernel to the next, at most."""


@dataclass(frozen=True)
class Device:
    """The work of a trace on its device. rows: of all such work, by its start."""

    events: Events

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        rows = self.events.of(*words.ON_DEVICE)
        ordered: NDArray[np.intp] = rows[np.argsort(self.events.start[rows], kind="stable")]
        return ordered

    @cached_property
    def collectives(self) -> NDArray[np.intp]:
        kernels = self.rows[self.events.category[self.rows] == words.KERNEL]
        return self.events.named(kernels, words.is_collective)

    @cached_property
    def copies(self) -> NDArray[np.intp]:
        copied: NDArray[np.intp] = self.rows[self.events.category[self.rows] == words.COPY]
        return copied

    @cached_property
    def kernels(self) -> NDArray[np.intp]:
        """Kernels and fills, without collectives."""
        return self.rows[~np.isin(self.rows, self.copies) & ~np.isin(self.rows, self.collectives)]

    @cached_property
    def computing(self) -> Spans:
        return self.spans(self.kernels)

    @cached_property
    def communicating(self) -> Spans:
        return self.spans(self.collectives)

    @cached_property
    def useful(self) -> Spans:
        """Computing or communicating."""
        return both(self.computing, self.communicating)

    @cached_property
    def busy(self) -> Spans:
        return both(self.useful, self.spans(self.copies))

    def spans(self, rows: NDArray[np.intp]) -> Spans:
        return union(self.events.start[rows], self.events.end[rows])


def worked(device: Device, begins: Numbers, ends: Numbers) -> dict[str, Numbers]:
    """Nanoseconds of each window: computing, communication that no computing hides, copies that neither hides."""
    computing = covered(device.computing, begins, ends)
    useful = covered(device.useful, begins, ends)
    busy = covered(device.busy, begins, ends)
    return {"compute": computing, "communication": useful - computing, "memcpy": busy - useful}


@dataclass(frozen=True)
class Host:
    """What the host did, as far as it tells why the device idles."""

    data: Spans
    waiting: Spans
    launched: Numbers
    """For each row of the device's work when the call began that queued it; -1 where that is not told."""


def host(events: Events, device: Device) -> Host:
    """Read off calls and marks of EVENTS."""
    calls, marks = events.of(words.CALL), events.of(words.MARK)
    data = events.named(marks, lambda name: name.startswith(words.DATA))
    waits = events.named(calls, words.WAITING_CALLS.__contains__)
    asked = events.named(events.of(words.OPERATOR), words.WAITING_OPERATORS.__contains__)
    waiting = np.concatenate((waits, asked))
    return Host(
        union(events.start[data], events.end[data]),
        union(events.start[waiting], events.end[waiting]),
        _launched(events, calls, device.rows),
    )


def _launched(events: Events, calls: NDArray[np.intp], work: NDArray[np.intp]) -> Numbers:
    if not len(calls):
        return np.full(len(work), NONE, np.int64)
    order = np.argsort(events.call[calls], kind="stable")
    numbers = events.call[calls][order]
    found = np.minimum(np.searchsorted(numbers, events.call[work]), len(numbers) - 1)
    told = (numbers[found] == events.call[work]) & (events.call[work] != NONE)
    return np.where(told, events.start[calls][order][found], NONE)


def idled(device: Device, known: Host, begins: Numbers, ends: Numbers) -> dict[str, Numbers]:
    """Nanoseconds of each window in which the device had no work, by what it waited for.

    input: the host waited for a batch. sync: the host had waited for the device, which therefore had nothing queued.
    launch: the host was about to launch the next work, or the device took from one kernel to the next. host: it did
    something else for longer than PAUSE. other: work was queued and the device did not begin it.
    """
    none = {cause: np.zeros(len(begins), np.int64) for cause in IDLE}
    if not len(begins):
        return none
    first, last = holes(device.busy, int(begins[0]), int(ends[-1]))
    if not len(first):
        return none
    return _by_window(_causes(device, known, first, last), begins, ends, none)


@dataclass(frozen=True)
class _Hole:
    """Columns, one row for each time without work: when it began and ended, and how the host stood to it.

    released: when the host came back from waiting for the device, if it waited as the hole began, else the begin.
    launched: when the call began that ended the hole. pausing: the cause of what lies between both.
    """

    begin: Numbers
    end: Numbers
    released: Numbers
    launched: Numbers
    waited: NDArray[np.bool_]
    queued: NDArray[np.bool_]
    paused: NDArray[np.bool_]
    data: Spans


def _causes(device: Device, known: Host, begin: Numbers, end: Numbers) -> _Hole:
    starts = device.events.start[device.rows]
    next_work = np.searchsorted(starts, end, side="left")
    is_last = next_work >= len(starts)
    launched = known.launched[np.minimum(next_work, len(starts) - 1)] if len(starts) else np.full(len(end), NONE)
    launched = np.where(is_last | (launched == NONE), end, launched)
    queued = launched <= begin
    waits = at(known.waiting, begin)
    waited = (waits >= 0) & ~queued
    released = begin.copy()
    released[waited] = np.minimum(known.waiting[1][waits[waited]], end[waited])
    until = np.clip(launched, released, end)
    rest = until - released - covered(known.data, released, until)
    return _Hole(begin, end, released, until, waited, queued, rest > PAUSE, known.data)


def _by_window(hole: _Hole, begins: Numbers, ends: Numbers, total: dict[str, Numbers]) -> dict[str, Numbers]:
    """Each hole cut at the windows' edges, and its parts added up by window and cause."""
    first = np.searchsorted(ends, hole.begin, side="right")
    last = np.searchsorted(begins, hole.end, side="left")
    count = np.maximum(last - first, 0)
    which = np.repeat(np.arange(len(hole.begin)), count)
    window = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count) + first[which]
    low, high = np.maximum(hole.begin[which], begins[window]), np.minimum(hole.end[which], ends[window])
    for cause, spent in _parts(hole, which, low, high).items():
        np.add.at(total[cause], window, spent)
    return total


def _parts(hole: _Hole, which: NDArray[np.intp], low: Numbers, high: Numbers) -> dict[str, Numbers]:
    released, launched = np.clip(hole.released[which], low, high), np.clip(hole.launched[which], low, high)
    queued, waited, paused = hole.queued[which], hole.waited[which], hole.paused[which]
    data = np.where(queued, 0, covered(hole.data, released, launched))
    between, rest = launched - released - data, (released - low) + (high - launched)
    whole = high - low
    short = queued & (hole.end[which] - hole.begin[which] <= LATENCY)
    between, rest = np.where(queued, 0, between), np.where(queued, 0, rest)
    return {
        "input": data,
        "sync": np.where(waited, rest + np.where(paused, 0, between), 0),
        "launch": np.where(waited, 0, rest + np.where(paused, 0, between)) + np.where(short, whole, 0),
        "host": np.where(paused, between, 0),
        "other": np.where(queued & ~short, whole, 0),
    }
