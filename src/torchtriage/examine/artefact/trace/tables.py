"""Tables of a trace: operators, kernels, copies, calls that wait, and shapes, the longest first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from torchtriage.examine.artefact.trace import words
from torchtriage.examine.artefact.trace.device import LATENCY, Device
from torchtriage.examine.artefact.trace.events import NONE, Events, Numbers
from torchtriage.examine.artefact.trace.rank import LETTERS, ROWS, CopyRow, KernelRow, OperatorRow, ShapeRow, WaitRow
from torchtriage.examine.artefact.trace.spans import at, covered, union

Rows = NDArray[np.intp]
LOOKED = 2000
"""Waits whose line is looked for, at most."""
_FRAME = re.compile(r"(?P<path>.+)\((?P<line>\d{1,9})\): (?P<function>.+)\Z", re.S)
_NOT_THE_USERS = (
    "site-packages/",
    "dist-packages/",
    "/torch/",
    "<built-in",
    "<frozen",
    "lib/python",
    "<string>",
    "nn.Module:",
)


def sums(numbers: Numbers, weights: Numbers, size: int) -> Numbers:
    """The sum of WEIGHTS for each of SIZE numbers, exact below 2**53."""
    return np.bincount(numbers, weights=weights.astype(float), minlength=size).astype(np.int64)


def longest(times: Numbers, most: int = ROWS) -> list[int]:
    """The numbers with the largest TIMES above 0."""
    order = np.argsort(-times, kind="stable")[:most]
    return [int(number) for number in order if times[number] > 0]


def operators(events: Events, rows: Rows) -> tuple[OperatorRow, ...]:
    """By their own time."""
    size = len(events.names)
    names, length = events.name[rows], events.length[rows]
    own, total, count = (
        sums(names, own_times(events, rows), size),
        sums(names, length, size),
        np.bincount(names, minlength=size),
    )
    return tuple(
        OperatorRow(events.names[name][:LETTERS], int(count[name]), int(total[name]), int(own[name]))
        for name in longest(own)
    )


def own_times(events: Events, rows: Rows) -> Numbers:
    """Nanoseconds that each of ROWS spent outside of those that it called, on its thread."""
    above, order = parents(events, rows)
    own = events.length[rows].copy()
    inner = np.flatnonzero(above >= 0)
    np.subtract.at(own, order[above[inner]], events.length[rows][order[inner]])
    return np.maximum(own, 0)


def parents(events: Events, rows: Rows) -> tuple[Numbers, Numbers]:
    """ROWS by thread and begin: for each place in that order the place of the row around it, or -1; and the order."""
    start, length, thread = events.start[rows], events.length[rows], events.thread[rows]
    order = np.lexsort((-length, start, thread))
    if not len(order):
        return order, order
    # threads one after the other on one line of time
    shift = thread[order] * (int((start + length).max()) - int(start.min()) + 2)
    begin = start[order] - int(start.min()) + shift
    end = begin + length[order]
    closed = np.searchsorted(np.sort(end), begin, side="right") - (length[order] == 0)
    depth = np.arange(len(order)) - closed
    above = np.full(len(order), -1, np.int64)
    upper = np.flatnonzero(depth <= 0)
    for level in range(1, min(int(depth.max()), 200) + 1):
        here = np.flatnonzero(depth == level)
        found = np.searchsorted(upper, here) - 1
        above[here] = np.where(found >= 0, upper[np.maximum(found, 0)], -1)
        upper = here
    return above, order


def kernels(events: Events, rows: Rows) -> tuple[KernelRow, ...]:
    size = len(events.names)
    names, length = events.name[rows], events.length[rows]
    total, count = sums(names, length, size), np.bincount(names, minlength=size)
    short = np.bincount(names[length < LATENCY], minlength=size)
    return tuple(
        KernelRow(events.names[name][:LETTERS], int(count[name]), int(total[name]), int(short[name]))
        for name in longest(total)
    )


def copies(device: Device) -> tuple[CopyRow, ...]:
    """exposed: of the times in which several copies run, each has its own."""
    events, rows = device.events, device.copies
    hidden = covered(device.useful, events.start[rows], events.end[rows])
    moved = np.array([events.copied.get(row, 0) for row in rows.tolist()], np.int64)
    size, names = len(events.names), events.name[rows]
    total, exposed = sums(names, events.length[rows], size), sums(names, events.length[rows] - hidden, size)
    count, carried = np.bincount(names, minlength=size), sums(names, moved, size)
    return tuple(
        CopyRow(events.names[name][:LETTERS], *(int(each[name]) for each in (count, total, carried, exposed)))
        for name in longest(total)
    )


def shapes(events: Events, work: Rows) -> tuple[ShapeRow, ...]:
    """Operators with the shapes of their inputs, by the time of the kernels that they launched."""
    told = events.of(words.OPERATOR)
    told = told[(events.shape[told] != NONE) & (events.inside[told] != NONE)]
    if not len(told) or not len(work):
        return ()
    order = told[np.argsort(events.inside[told], kind="stable")]
    found = np.minimum(np.searchsorted(events.inside[order], events.inside[work]), len(order) - 1)
    known = (events.inside[order][found] == events.inside[work]) & (events.inside[work] != NONE)
    shape, launched = events.shape[order[found[known]]], work[known]
    total = sums(shape, events.length[launched], len(events.shapes))
    count = np.bincount(events.shape[told], minlength=len(events.shapes))
    return tuple(_shape_row(events, number, count, total, launched[shape == number]) for number in longest(total))


def _shape_row(events: Events, number: int, count: Numbers, total: Numbers, launched: Rows) -> ShapeRow:
    name, dims, types = events.shapes[number]
    longest_one = events.names[int(events.name[launched[events.length[launched].argmax()]])]
    dims_, types_ = (each.decode("utf-8", "replace")[: 2 * LETTERS] for each in (dims, types))
    return ShapeRow(name[:LETTERS], dims_, types_, int(count[number]), int(total[number]), longest_one[:LETTERS])


def waits(events: Events) -> tuple[WaitRow, ...]:
    """Calls that wait for the device, by operator and, where the trace has Python's frames, by function."""
    rows = events.named(events.of(words.CALL), words.WAITING_CALLS.__contains__)
    groups: dict[tuple[str, str, tuple[str, int, str] | None], list[int]] = {}
    outer = _outermost(events, rows)
    for row, operator, place in zip(rows.tolist(), outer, _places(events, rows), strict=True):
        group = groups.setdefault((operator, events.names[int(events.name[row])][:LETTERS], place), [0, 0])
        group[0] += 1
        group[1] += int(events.length[row])
    made = []
    for (operator, call, place), (count, spent) in groups.items():
        path, line, function = place or (None, None, None)
        made.append(WaitRow(operator, call, count, spent, path, line, function))
    return tuple(sorted(made, key=lambda each: (-each.count, -each.nanoseconds, each.operator))[:ROWS])


def _outermost(events: Events, rows: Rows) -> list[str]:
    """For each of ROWS the operator around it that no other is around, "" where there is none."""
    inner = events.of(words.OPERATOR)
    told = np.full(len(rows), -1, np.int64)
    for thread in np.unique(events.thread[rows]).tolist():
        own = inner[events.thread[inner] == thread]
        order = own[np.argsort(events.start[own], kind="stable")]
        tops = union(events.start[order], events.end[order])
        here = np.flatnonzero(events.thread[rows] == thread)
        index = at(tops, events.start[rows[here]])
        firsts = (
            order[np.minimum(np.searchsorted(events.start[order], tops[0]), max(len(order) - 1, 0))]
            if len(order)
            else order
        )
        told[here[index >= 0]] = firsts[index[index >= 0]]
    return ["" if row < 0 else events.names[int(events.name[row])][:LETTERS] for row in told.tolist()]


def _places(events: Events, rows: Rows) -> Iterable[tuple[str, int, str] | None]:
    frames = events.named(events.of(words.FRAME), _is_the_users)
    if not len(frames):
        return [None] * len(rows)
    return list(_innermost(events, rows, frames))


def _innermost(events: Events, rows: Rows, frames: Rows) -> Iterator[tuple[str, int, str] | None]:
    """The user's own function around each of the first LOOKED of ROWS, and where it begins."""
    frames = frames[np.argsort(events.start[frames], kind="stable")]
    starts, ends, threads = events.start[frames], events.end[frames], events.thread[frames]
    for number, row in enumerate(rows.tolist()):
        begin = events.start[row]
        around = slice(0, int(np.searchsorted(starts, begin, side="right")) if number < LOOKED else 0)
        inside = np.flatnonzero((ends[around] >= begin) & (threads[around] == events.thread[row]))
        found = _FRAME.match(events.names[int(events.name[frames[inside[-1]]])]) if len(inside) else None
        yield (found["path"][-LETTERS:], int(found["line"]), found["function"][:LETTERS]) if found else None


def _is_the_users(name: str) -> bool:
    return _FRAME.match(name) is not None and not any(part in name for part in _NOT_THE_USERS)
