"""The marks of one process, in the order in which they were made: JSON lines, one for each turn of an optimizer."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from time import perf_counter_ns as now
from typing import Any

ROOM = 256 << 20  # bytes, after which nothing more is written
HELD = 200_000_000  # nanoseconds for which lines may wait for one another
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Sequence:
    """Collects marks under names, and writes them by turns to FOLDER/prints<RANK>.jsonl.

    A process that trains nothing leaves no file; a second one of the same rank has its number in the name.
    """

    def __init__(self, folder: str, rank: Any) -> None:
        self.folder, self._rank, self._file = folder, rank, -1
        self._numbers: dict[tuple[str, str], int] = {}
        self._names: list[tuple[str, str]] = []
        self._at: list[int] = []
        self._marks: list[Any] = []
        self._last: list[int] = []
        self._waiting: list[str] = []
        self._written, self._flushed, self._told = 0, now(), 0
        self.turn, self.full = 0, False
        self.began = now()

    def add(self, kind: str, name: str, mark: Any) -> None:
        """MARK of what is called NAME, which may be read later from a device; without one, that it was there."""
        key = kind, name
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._names)
            self._names.append(key)
        self._at.append(number)
        self._marks.append(mark)

    @property
    def empty(self) -> bool:
        return not self._at

    def line(self, kind: str, **fields: Any) -> None:
        """One line of another kind, which waits with the others."""
        self._put(_encode({"kind": kind, "turn": self.turn, **fields}))

    def close(self, by: int, **fields: Any) -> None:
        """Ends a turn of the optimizer of the number BY, -1 where there is none."""
        if self.full:
            return
        ended = now()
        if len(self._names) > self._told:
            self._put(_encode({"kind": "names", "names": self._names[self._told :]}))
            self._told = len(self._names)
        line: dict[str, Any] = {"kind": "turn", "turn": self.turn, "by": by, "seconds": (ended - self.began) / 1e9}
        if self._at != self._last:
            line["at"] = self._last = self._at
        line["marks"] = _read(self._marks)
        self._put(_encode({**line, **fields}))
        self._at, self._marks = [], []
        self.turn += 1
        if self.turn < 64 or ended - self._flushed > HELD:
            self.flush()
        self.began = now()

    def flush(self) -> None:
        """Writes what waits, whole lines only."""
        lines, self._waiting, self._flushed = self._waiting, [], now()
        if not lines or self.full:
            return
        data = ("\n".join(lines) + "\n").encode()
        self._written += len(data)
        with suppress(OSError):
            if self._file < 0:
                self._file = self._opened()
            os.write(self._file, data)
        if self._written > ROOM:
            self.full = True
            with suppress(OSError):
                os.write(self._file, (_encode({"kind": "full", "turn": self.turn}) + "\n").encode())

    def _put(self, text: str) -> None:
        if not self.full:
            self._waiting.append(text)

    def _opened(self) -> int:
        rank = self._rank()
        for name in ("", f".{os.getpid()}"):
            with suppress(FileExistsError):
                path = f"{self.folder}/prints{rank}{name}.jsonl"
                return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o644)
        raise FileExistsError(f"prints{rank}")

    def forked(self) -> None:
        """In a forked child: the file and what waits for it are the parent's."""
        self.__init__(self.folder, self._rank)  # type: ignore[misc]


def _read(marks: list[Any]) -> list[int | None]:
    """The numbers; those that lie on a device are fetched in one copy."""
    late = [each for each in marks if each is not None and not isinstance(each, int)]
    if not late:
        return marks
    import torch

    by_device: dict[Any, list[Any]] = {}
    for each in late:
        by_device.setdefault(each.device, []).append(each)
    read: dict[int, int] = {}
    for found in by_device.values():
        for each, (low, high) in zip(found, torch.stack(found).cpu().tolist(), strict=True):
            read[id(each)] = ((low & 0xFFFFFFFFFFFFFFFF) << 64) | (high & 0xFFFFFFFFFFFFFFFF)
    return [read.get(id(each), each) for each in marks]
