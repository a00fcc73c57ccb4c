"""Stacks of a snapshot, each told once. Part of the process that takes a pickle apart: numbers and strings, no lore."""

from __future__ import annotations

from typing import Any

MOST = 4000
"""Stacks that are told; the rest counts as OTHERS."""
NONE, OTHERS = 0, 1
_DEEP = 250  # frames of a stack
_LONG = 400  # characters of a path or a function, of which C++ has long ones


class Stacks:
    """Stacks by number, rows of numbers of frames. Frames are shared objects in a pickle, their lists often are not."""

    def __init__(self) -> None:
        self.frames: list[tuple[str, int, str]] = []
        self.rows: list[list[int]] = [[], []]
        self._known_frames: dict[Any, int] = {}
        self._by_list: dict[int, int] = {}
        self._by_frames: dict[tuple[int, ...], int] = {}
        self._by_content: dict[tuple[int, ...], int] = {}

    def number(self, frames: Any) -> int:
        """The number of FRAMES, a list of {filename, line, name}; NONE for anything else."""
        if not isinstance(frames, list) or not frames:
            return NONE
        known = self._by_list.get(id(frames))
        if known is None:
            key = tuple(map(id, frames[:_DEEP]))
            known = self._by_frames.get(key)
            if known is None:
                known = self._by_frames[key] = self._new(frames[:_DEEP])
            self._by_list[id(frames)] = known
        return known

    def _new(self, frames: list[Any]) -> int:
        row = tuple(self._frame(each) for each in frames if isinstance(each, dict))
        known = self._by_content.get(row)
        if known is None:
            if len(self.rows) >= MOST or not row:
                return OTHERS if row else NONE
            self.rows.append(list(row))
            known = self._by_content[row] = len(self.rows) - 1
        return known

    def _frame(self, frame: dict[str, Any]) -> int:
        """Its number, by what it says: that of the first with the same words."""
        known = self._known_frames.get(id(frame))
        if known is None:
            row = _row(frame)
            known = self._known_frames.setdefault(row, len(self.frames))
            if known == len(self.frames):
                self.frames.append(row)
            self._known_frames[id(frame)] = known
        return known


def _row(frame: dict[str, Any]) -> tuple[str, int, str]:
    path, line, name = frame.get("filename"), frame.get("line"), frame.get("name")
    number = line if isinstance(line, int) and 0 <= line < 2**31 else 0
    return path[-_LONG:] if isinstance(path, str) else "", int(number), name[:_LONG] if isinstance(name, str) else ""
