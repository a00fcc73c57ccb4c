"""The events of a trace as columns: one number for each event and field, no object for each event."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int64]
NONE = -1
T = TypeVar("T")


@dataclass
class Odd:
    """What was passed over, by what was wrong with it: how many events, each counted once."""

    counts: dict[str, int] = field(default_factory=dict)

    def add(self, what: str, times: int = 1) -> None:
        if times:
            self.counts[what] = self.counts.get(what, 0) + times


@dataclass(frozen=True)
class Collective:
    """A collective as its kernel or mark tells it. group: of ranks; elements: of the larger buffer."""

    operation: str
    group: str = ""
    ranks: str = ""
    sequence: int = NONE
    elements: int = 0
    dtype: str = ""


@dataclass(frozen=True)
class Events:
    """All events that last, in the order of the file.

    category: one of words.py. name, thread, shape: numbers of the tables beside. start, length: nanoseconds.
    call: the number that a call and the work it queued share; inside: the operator's number; NONE where not told.
    """

    category: NDArray[np.int8]
    name: Numbers
    thread: Numbers
    start: Numbers
    length: Numbers
    call: Numbers
    inside: Numbers
    shape: Numbers
    names: Sequence[str]
    threads: Sequence[int | str]
    shapes: Sequence[tuple[str, bytes, bytes]]
    collectives: dict[int, Collective]
    copied: dict[int, int]

    @property
    def end(self) -> Numbers:
        return self.start + self.length

    def of(self, *categories: int) -> NDArray[np.intp]:
        """The rows of CATEGORIES."""
        return np.flatnonzero(np.isin(self.category, categories))

    def named(self, rows: NDArray[np.intp], wanted: Any) -> NDArray[np.intp]:
        """Those of ROWS whose name WANTED says yes to; asked once for each name."""
        names = self.name[rows]
        used = np.unique(names)
        chosen = np.array([number for number in used.tolist() if wanted(self.names[number])], dtype=np.int64)
        return rows[np.isin(names, chosen)]


class Table(dict[T, int]):
    """Values by number, in the order in which they first came."""

    def __missing__(self, value: T) -> int:
        self[value] = number = len(self)
        return number

    def numbers(self, values: Sequence[T]) -> Numbers:
        return np.fromiter(map(self.__getitem__, values), np.int64, len(values))


class Gathering:
    """Columns that grow piece by piece, with tables of what they number."""

    FIELDS = ("category", "name", "thread", "start", "length", "call", "inside", "shape")

    def __init__(self) -> None:
        self.parts: dict[str, list[Any]] = {name: [] for name in self.FIELDS}
        self.names: Table[str] = Table()
        self.threads: Table[int | str] = Table()
        self.shapes: Table[tuple[str, bytes, bytes]] = Table()
        self.collectives: dict[int, Collective] = {}
        self.copied: dict[int, int] = {}
        self.count = 0

    def add(self, **columns: Any) -> None:
        """One piece: arrays of one length for every field."""
        for name in self.FIELDS:
            self.parts[name].append(columns[name])
        self.count += len(columns["start"])

    def done(self) -> Events:
        columns: dict[str, Any] = {name: _joined(name, parts) for name, parts in self.parts.items()}
        return Events(
            **columns,
            names=list(self.names),
            threads=list(self.threads),
            shapes=list(self.shapes),
            collectives=self.collectives,
            copied=self.copied,
        )


def _joined(name: str, parts: list[Any]) -> Any:
    kind = np.int8 if name == "category" else np.int64
    return np.concatenate(parts).astype(kind, copy=False) if parts else np.zeros(0, kind)
