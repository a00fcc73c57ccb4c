"""Which line of the user's changes something, and which are reached: his lines are followed one by one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from . import frames

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence, Set
    from types import FrameType

_LINES = 4000  # that are followed: some milliseconds, once or twice in a run


class Follower:
    """Follows this thread from the frame of the user's code that runs now, until `stop`.

    changed: asked after every line. found: file and line of the one that did it, and of the calls that led there from
    the code in which the following began; nothing where a debugger, or who measures coverage, follows the lines.
    """

    def __init__(self, changed: Callable[[], bool]) -> None:
        self.changed = changed
        self.found: list[tuple[str, int]] = []
        self._frames: list[FrameType] = []
        self._last: list[tuple[str, int]] = []
        self._left = _LINES
        if sys.gettrace() is None:
            frame = frames.nearest(sys._getframe(1))
            while frame is not None:
                self._frames.append(frame)
                frame = frames.nearest(frame.f_back)
            self._last = self._spot(self._frames[0]) if self._frames else []
            for each in self._frames:
                each.f_trace = self._local
            sys.settrace(self._enter)

    def stop(self) -> list[tuple[str, int]]:
        """Ends it: the line that was running last may be the one."""
        if self._frames:
            if not self.found and self.changed():
                self.found = self._last
            self._leave()
        return self.found

    def _leave(self) -> None:
        if sys.gettrace() == self._enter:
            sys.settrace(None)
        for each in self._frames:
            each.f_trace = None
        self._frames = []

    def _enter(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        if frames is None:  # the interpreter is taking its modules apart
            return None
        self._left -= 1  # what is called counts as well: library code is not followed, but it is asked about
        if self._left <= 0:
            self._leave()
        return self._local if self._frames and frames.path_of(frame.f_code) is not None else None

    def _local(self, frame: FrameType, event: str, _argument: Any) -> Any:
        try:
            if self._frames:
                self._look(frame, event)
        except Exception:  # noqa: BLE001 - an error in here would come out of the user's line
            self._leave()
        return self._local if self._frames else None

    def _look(self, frame: FrameType, event: str) -> None:
        self._left -= 1
        if self.changed():
            self.found = self._last
        if self.found or self._left <= 0:
            self._leave()
        elif event == "line":
            self._last = self._spot(frame)

    def _spot(self, frame: FrameType) -> list[tuple[str, int]]:
        """Where FRAME stands, and those that called it, as far as the first in which the following began."""
        found: list[tuple[str, int]] = []
        outer: FrameType | None = frame
        while outer is not None and len(found) < 4:
            found.append((str(frames.path_of(outer.f_code)), outer.f_lineno))
            if outer in self._frames:
                break
            outer = frames.nearest(outer.f_back)
        return found


class Visits:
    """Which lines of frames that are running are reached, until `stop`; none where somebody else follows them.

    wanted: the frames, of the user's code, and those lines of each.
    """

    def __init__(self, wanted: Sequence[tuple[FrameType, Set[int]]]) -> None:
        self.reached: dict[tuple[str, int], None] = {}
        self._wanted = dict(wanted)
        if sys.gettrace() is not None:
            self._wanted = {}
        for frame in self._wanted:
            frame.f_trace = self._local
        if self._wanted:
            sys.settrace(self._enter)

    def stop(self) -> list[tuple[str, int]]:
        if sys.gettrace() == self._enter:
            sys.settrace(None)
        for frame in self._wanted:
            frame.f_trace = None
        self._wanted = {}
        return list(self.reached)

    def _enter(self, _frame: FrameType, _event: str, _argument: Any) -> None:
        """Nothing that is called is followed."""

    def _local(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line" and frame.f_lineno in self._wanted.get(frame, ()):
            self.reached.setdefault((str(frames.path_of(frame.f_code)), frame.f_lineno))
        return self._local
