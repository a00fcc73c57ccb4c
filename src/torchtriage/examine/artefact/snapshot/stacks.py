"""Stacks of a snapshot, each told once. Part of the process that takes a pickle apart: numbers and strings, no lore."""

from __future__ import annotations

from typing import Any

MOST = 4000
"""Stacks that are told; the rest counts as one without frames."""
_DEEP = 120  # frames of a stack
_LONG = 400  # characters of a path or a function, of which C++ has long ones

Row = list[Any]


class Stacks:
    """Stacks by number: 0 has no frames. Frames are shared objects in a pickle, their lists often are not."""

    def __init__(self) -> None:
        self.rows: list[list[Row]] = [[]]
        self._by_list: dict[int, int] = {}
        self._by_frames: dict[tuple[int, ...], int] = {}
        self._by_content: dict[tuple[Any, ...], int] = {}

    def number(self, frames: Any) -> int:
        """The number of FRAMES, a list of {filename, line, name}; 0 for anything else."""
        if not isinstance(frames, list) or not frames:
            return 0
        known = self._by_list.get(id(frames))
        if known is None:
            key = tuple(map(id, frames))
            known = self._by_frames.get(key)
            if known is None:
                known = self._by_frames[key] = self._new(frames)
            self._by_list[id(frames)] = known
        return known

    def _new(self, frames: list[Any]) -> int:
        rows = [_row(each) for each in frames[:_DEEP] if isinstance(each, dict)]
        content = tuple(map(tuple, rows))
        known = self._by_content.get(content)
        if known is None:
            if len(self.rows) >= MOST or not rows:
                return 0
            self.rows.append(rows)
            known = self._by_content[content] = len(self.rows) - 1
        return known


def _row(frame: dict[str, Any]) -> Row:
    path, line, name = frame.get("filename"), frame.get("line"), frame.get("name")
    number = line if isinstance(line, int) and 0 <= line < 2**31 else 0
    return [path[-_LONG:] if isinstance(path, str) else "", int(number), name[:_LONG] if isinstance(name, str) else ""]
