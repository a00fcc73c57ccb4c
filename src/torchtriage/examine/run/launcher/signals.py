"""Signals that reach us are the job's."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from torchtriage.examine.run.launcher.notes import Notes

ENDING = (signal.SIGTERM, signal.SIGINT)
FORWARDED = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")


@contextmanager
def passing_on(job: subprocess.Popen[bytes], notes: Notes | None = None) -> Iterator[None]:
    """What reaches us alone is handed on; Ctrl-C at a terminal has reached the job already, so we only wait.

    Before what ends the job, the ranks of NOTES are asked once where they stand. What was ignored stays ignored
    (nohup). Outside the main thread nothing can be done about signals.
    """
    to_ask = [notes] if notes is not None else []

    def hand_on(number: int, _frame: FrameType | None) -> None:
        if number in ENDING and to_ask:
            to_ask.pop().ask()
        job.send_signal(number)

    def wait(_number: int, _frame: FrameType | None) -> None:
        """The job has got it too."""

    wanted = {
        signal.SIGINT: wait if at_terminal() else hand_on,
        **{getattr(signal, name): hand_on for name in FORWARDED},
    }
    before: dict[int, Any] = {}
    try:
        for number, handler in wanted.items():
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, handler)
    except ValueError:
        before = {}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def at_terminal() -> bool:
    """Whether a terminal's Ctrl-C goes to our process group, the job's too."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)
