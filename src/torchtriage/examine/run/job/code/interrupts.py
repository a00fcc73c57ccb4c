"""Errors that come out of our code and are not ours: what a signal handler of the job, or another thread, throws in."""

from __future__ import annotations

import signal
import sys
from typing import Any

from .frames import OURS

_OURS = str(OURS)


def is_asynchronous(error: BaseException) -> bool:
    """Whether ERROR was raised by a signal handler of the job, or put into the thread from outside.

    The latter shows in that one of the job's own classes was raised by a line of ours, which raises none of them.
    """
    codes = list(_frames(error))
    if any(code in _handlers() for code in codes):
        return True
    kind = type(error).__module__.partition(".")[0]
    known = kind in {"builtins", "torch", "torchtriage", "numpy"} or kind in sys.stdlib_module_names
    return bool(codes) and not known and codes[-1].co_filename.startswith(_OURS)


def _frames(error: BaseException) -> Any:
    """The code that ERROR went through, the outermost first."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code
        trace = trace.tb_next


def _handlers() -> set[Any]:
    """The code of the job's signal handlers."""
    found = set()
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        handler = getattr(handler, "func", handler)  # of a partial
        handler = getattr(handler, "__func__", handler)  # of a method
        own = handler if hasattr(handler, "__code__") else vars(type(handler)).get("__call__")
        found.add(getattr(own, "__code__", None))
    return found - {None}
