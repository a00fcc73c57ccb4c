"""Passes that raised an error, and from which the job went on: an `except` hides them."""

from __future__ import annotations

from linecache import getline
from typing import TYPE_CHECKING

from ..code import frames
from ..events import PassFailed, replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..events import Event

TIMES = frozenset({3, 10, 100, 1000, 10_000, 100_000})  # after which it is written down again
MOST = 16  # kinds of errors, by line
LENGTH = 300  # of a message
THEIRS = frozenset({"builtins", "torch", "torch._C"})  # an error of the program's own may be how it leaves a model
MEMORY = "out of memory"  # which a search for the largest batch provokes


class Failures:
    """By phase, error and line: how often a pass in training has failed so.

    count: of passes so far, by their kind. record: writes an event down.
    """

    def __init__(self, count: Callable[[str], int], record: Callable[[Event], None]) -> None:
        self._count, self._record = count, record
        self._known: dict[tuple[str, str, str, int], tuple[PassFailed, int]] = {}

    def note(self, phase: str, error: BaseException) -> None:
        """A call of a root module, or a backward pass, has raised ERROR, which goes on to the job."""
        if type(error).__module__ not in THEIRS or MEMORY in str(error) or self._is_raised_by_job(error):
            return
        passed = self._count(f"{phase}s")
        path, line = frames.caller()
        key = (phase, type(error).__name__, path, line)
        if key not in self._known and len(self._known) >= MOST:
            return
        message = str(error).strip()[:LENGTH]
        fresh = PassFailed(phase=phase, error=type(error).__name__, message=message, path=path, line=line)
        event, before = self._known.setdefault(key, (fresh, passed))
        event.times += 1
        event.of = event.times + passed - before
        if event.times in TIMES:
            self._record(event)

    def _is_raised_by_job(self, error: BaseException) -> bool:
        """Whether a line of the user's raises ERROR: to leave a model early, whose inputs are wanted, some do."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        if trace is None or frames.path_of(trace.tb_frame.f_code) is None:
            return False
        return getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno).strip().startswith("raise")

    def ending(self) -> None:
        for (phase, *_), (event, before) in self._known.items():
            of = event.times + self._count(f"{phase}s") - before
            self._record(replace(event, of=of, last=True))
