"""The optimizers of the job, and where they were built."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Built:
    """The optimizers, and the user's line that built each; of one that is older than the watch, nothing."""

    def __init__(self) -> None:
        self._lines: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._lines))

    def __bool__(self) -> bool:
        return bool(self._lines)

    def add(self, optimizer: Any, place: tuple[str, int]) -> None:
        """PLACE: file and line, ("", 0) where nobody knows."""
        self._lines[optimizer] = place

    def at(self, optimizer: Any) -> tuple[str, int]:
        return self._lines.get(optimizer, ("", 0))
