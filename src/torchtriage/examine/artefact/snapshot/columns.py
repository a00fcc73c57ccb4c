"""A device's history as columns, and which allocation ended when. Part of the process that takes a pickle apart."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[np.int64]
Marks = NDArray[np.bool_]
ALLOC, FREE, RESERVE, RELEASE, OOM = 1, 2, 3, 4, 5
_ACTIONS = {
    "alloc": ALLOC, "free_completed": FREE, "segment_alloc": RESERVE, "segment_map": RESERVE,
    "segment_free": RELEASE, "segment_unmap": RELEASE, "oom": OOM,
}  # fmt: skip


class _Codes(dict[Any, int]):
    def __missing__(self, action: Any) -> int:
        return 0


class History:
    """One row for each entry of TRACE, in its order.

    action: one of ALLOC … OOM, 0 for what moves no memory. addr, size: of the block, in bytes. time: microseconds, all
    0 where this torch recorded none. ends: for an ALLOC, the row that frees it; rows, the number of all, where none
    does. before: rows that free what was allocated before the first.
    """

    def __init__(self, trace: list[Any]) -> None:
        self.rows = len(trace)
        codes = _Codes(_ACTIONS)
        actions = map(codes.__getitem__, map(itemgetter("action"), trace))
        self.action = np.fromiter(actions, np.int64, self.rows)
        self.size = _column(trace, "size", self.rows)
        self.addr = _column(trace, "addr", self.rows)
        self.time = _column(trace, "time_us", self.rows)
        self.ends, self.before = self._paired()
        freed = np.flatnonzero(self.ends < self.rows)
        freed = freed[self.action[self.ends[freed]] == FREE]
        self.size[self.ends[freed]] = self.size[freed]  # some versions round what is freed

    def _paired(self) -> tuple[Column, Column]:
        """By address, in the order of time: what follows an allocation at its place is its end."""
        rows = np.flatnonzero((self.action == ALLOC) | (self.action == FREE))
        rows = rows[np.argsort(self.addr[rows], kind="stable")]
        born = self.action[rows] == ALLOC
        same = np.zeros(len(rows), bool)
        same[:-1] = self.addr[rows[1:]] == self.addr[rows[:-1]]
        following = np.full(len(rows), self.rows)
        following[:-1][same[:-1]] = rows[1:][same[:-1]]
        ends = np.full(self.rows, self.rows)
        ends[rows[born]] = following[born]
        known = np.zeros(len(rows), bool)  # a free whose allocation stands before it
        known[1:] = same[:-1] & born[:-1]
        return ends, np.sort(rows[~born & ~known])

    def alive(self, row: int) -> Column:
        """The allocations of this history that are alive after ROW."""
        born = np.flatnonzero(self.action[: row + 1] == ALLOC)
        return born[self.ends[born] > row]

    def moved(self, more: int, less: int) -> Column:
        """What the sum of the sizes has become after each row, from 0."""
        signs = np.where(self.action == more, 1, np.where(self.action == less, -1, 0))
        return np.cumsum(signs * self.size)


def _column(trace: list[Any], name: str, rows: int) -> Column:
    """Whole numbers; -1 where an entry has none, as an out-of-memory entry has no address."""
    try:
        return np.fromiter(map(itemgetter(name), trace), np.int64, rows)
    except (KeyError, TypeError, ValueError, OverflowError):
        told = (each.get(name) for each in trace)
        numbers = (each if isinstance(each, int) and abs(each) < 2**62 else -1 for each in told)
        return np.fromiter(numbers, np.int64, rows)
