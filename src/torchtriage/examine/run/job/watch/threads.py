"""Which thread of the job is watched: one, since steps of two threads cannot be tiled into one series."""

from __future__ import annotations

import sys
from _thread import get_ident
from typing import TYPE_CHECKING

from ..events import Thread

if TYPE_CHECKING:
    from typing import Protocol

    from .phases import Phases

    class Watching(Protocol):
        """What is asked of the one who watches."""

        left: bool

        @property
        def phases(self) -> Phases: ...

        def record(self, event: Thread) -> None: ...

        def retire(self) -> None: ...


LOOKS = 64  # calls of another thread between two looks whether the watched one is still alive


class Watched:
    """The first thread that learns; before any has, whichever was seen last. When it has ended, the next one.

    thread: its identifier. learned: a backward pass has begun in it; autograd runs parts of that in threads of its own.
    """

    def __init__(self, job: Watching) -> None:
        self.job = job
        self.thread = get_ident()
        self.learned = False
        self._calls = 0
        self._told = False

    def passes(self) -> bool:
        """Whether the thread that calls, which is not the watched one, becomes it."""
        self._calls += 1
        settled = self.learned or self.job.phases.boundary is not None
        if self.job.left or (settled and (self._calls % LOOKS or self._lives())):
            return False
        self.thread = get_ident()
        return True

    def learns(self) -> None:
        """A backward pass begins that is watched."""
        if not self.learned:
            self.learned, self.thread = True, get_ident()

    def beside(self) -> None:
        """A backward pass begins that is not watched: another thread's makes it the next, or ends the looking.

        To read a gradient that another thread writes can end the process: from then on only times are taken.
        """
        if self.job.left or self.thread == get_ident():
            return
        if not self._lives():
            self.thread = get_ident()
        elif not self._told:
            self._told = True
            self.job.record(Thread())
            self.job.retire()

    def _lives(self) -> bool:
        return self.thread in sys._current_frames()
