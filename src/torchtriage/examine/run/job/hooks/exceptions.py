"""The errors that a job catches, prints or logs, and goes on from: one of them may be why it ends."""

from __future__ import annotations

import functools
import logging
import re
import sys
import threading
import weakref
from contextlib import suppress
from traceback import TracebackException
from typing import TYPE_CHECKING, Any

from ..events import Error, Handled
from ..watch import patching
from .crash import describe, is_describing, remove_own_frames, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from ..job import Job

HANDLED = 50  # errors that are described; a job that logs one at each step has more
_WAITING = frozenset({"Empty", "Full", "TimeoutError", "BrokenBarrierError", "CancelledError"})
"""What queues, events, barriers and futures raise for an answer that did not come."""
_CODE = re.compile(r"\w\(\s*-?\d+\s*\)\s*(?:#.*)?$")


def place(job: Job) -> None:
    """Keeps in mind what the job catches and prints or logs, and what ends its threads."""
    _watch_printing(job)
    _watch_threads(job)


def _watch_printing(job: Job) -> None:
    """Keeps our frames out of a traceback that the job prints or logs itself, and that error in mind.

    Programs catch what fails, log it, and leave with a code: what they printed last is why.
    """
    _handled.append(LastError(job))
    handled = _handled[-1]

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            if kwargs.get("_seen") is None:  # which is passed to the errors of its chain
                with suppress(Exception):
                    args, kwargs = handled.printed(args, kwargs)
            original(self, *args, **kwargs)

        return init

    def make_log(original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def handle(self: Any, record: Any) -> None:
            if record.levelno >= logging.ERROR and not record.exc_info:
                with suppress(Exception):
                    handled.logged(record.getMessage(), sys.exc_info()[1], sys._getframe(1))
            original(self, record)

        return handle

    job.undo(patching.replace(TracebackException, "__init__", make))
    job.undo(patching.replace(logging.Logger, "handle", make_log))
    job.undo(lambda: _handled.remove(handled))


def _watch_threads(job: Job) -> None:
    """Keeps our frames out of the traceback of a thread, and its error in mind: who waits for it fails later."""
    printed = threading.excepthook

    def excepthook(args: threading.ExceptHookArgs) -> None:
        with suppress(Exception):
            if args.exc_value is not None:
                remove_own_frames(args.exc_value)
                for handled in _handled[-1:]:
                    handled.failed_beside(args.exc_value)
                args = threading.ExceptHookArgs(
                    (args.exc_type, args.exc_value, args.exc_value.__traceback__, args.thread)
                )
        printed(args)

    def back() -> None:
        if threading.excepthook is excepthook:
            threading.excepthook = printed

    threading.excepthook = excepthook
    job.undo(back)


class LastError:
    """The last error that the job caught and printed, described, with the step in which that was."""

    def __init__(self, job: Job) -> None:
        self.job = weakref.ref(job)
        self.error: Error | None = None
        self.beside: Error | None = None  # the first error that ended a thread
        self.words: tuple[str, int] = ("", 0)  # what was logged last as an error, and the step in which that was
        self.step = 0
        self.is_over = False
        self._left = HANDLED

    def printed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of TracebackException(type, error, trace), by position or name, without our frames in trace."""
        error = args[1] if len(args) > 1 else kwargs["exc_value"]
        head = error.__traceback__
        if not is_describing():
            remove_own_frames(error)
            if not self.is_over:
                self.remember(error)
        if len(args) > 2 and args[2] is head:
            return (*args[:2], error.__traceback__, *args[3:]), kwargs
        if kwargs.get("exc_traceback") is head:
            return args, {**kwargs, "exc_traceback": error.__traceback__}
        return args, kwargs

    def logged(self, words: str, error: BaseException | None, frame: FrameType | None) -> None:
        """FRAME, or what called it, logs WORDS of its own while it handles ERROR: as the reason, if it caught it."""
        job = self.job()
        self.words = (words, job.step) if job is not None else ("", 0)
        while frame is not None and frame.f_code.co_filename == logging.__file__:
            frame = frame.f_back
        if error is not None and not self.is_over and not is_describing() and _is_caught_in(error, frame):
            self.remember(error)

    def remember(self, error: BaseException, *, is_last: bool = False) -> None:
        """Keeps the description of ERROR; of the error itself nothing is held."""
        job = self.job()
        if job is None or not isinstance(error, Exception):
            return
        self.error = None  # what came before was survived
        if self._left > 0 or is_last:
            self._left -= 1
            self.error, self.step = describe(error, job), job.step

    def failed_beside(self, error: BaseException) -> None:
        """ERROR has ended a thread of the job."""
        job = self.job()
        if job is not None and self.beside is None and isinstance(error, Exception):
            self.beside = describe(error, job)

    def reason(self) -> Handled | None:
        """The error over which the job may be ending; None where it has trained on since."""
        job = self.job()
        is_last = self.error is not None and job is not None and job.step == self.step
        return Handled(**vars(self.error)) if is_last else None

    def write(self) -> None:
        """Writes the reason down now: the process ends without its last words."""
        job, told = self.job(), self.reason()
        if job is not None and told is not None:
            write(job, told)


_handled: list[LastError] = []  # of the jobs in this process, the latest last


def leave(error: BaseException | None, frame: FrameType, line: str, message: str, *, at_once: bool) -> None:
    """FRAME calls sys.exit, or os._exit (at_once), on LINE with MESSAGE, "" for a code, while somebody handles ERROR.

    Only the error that FRAME itself has caught is its reason: a training may have been started in a handler further
    out, of a checkpoint that was not there. Outside of a handler, a message or a code that is written there has a
    reason of its own, and what was printed before was survived; `sys.exit(main())` passes on what main came to.
    """
    for handled in _handled[-1:]:
        handled.is_over = True
        if error is not None and _is_caught_in(error, frame):
            handled.remember(error, is_last=True)
        elif message or _CODE.search(line):
            handled.error = None
        if at_once:
            handled.write()


def _is_caught_in(error: BaseException, frame: FrameType | None) -> bool:
    trace = error.__traceback__
    return isinstance(error, Exception) and trace is not None and trace.tb_frame is frame


def awaited(error: BaseException) -> Error | None:
    """The error of a thread that ended before, where ERROR says no more than that an answer did not come."""
    is_waiting = type(error).__name__ in _WAITING
    return _handled[-1].beside if _handled and is_waiting else None


def words() -> str:
    """What the job logged last as an error, if it has not trained since; "" for nothing."""
    for handled in _handled[-1:]:
        said, step = handled.words
        job = handled.job()
        return said if job is not None and job.step == step else ""
    return ""


def reason() -> Handled | None:
    """The error that the job caught and printed last, if it has not trained since."""
    return _handled[-1].reason() if _handled else None
