"""Ends every process of a leg, however it has been started, and whatever ends us."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, Protocol

MARK = "TORCHTRIAGE_LEG"  # in the environment of every process of a leg, with a value of its own
_ROUNDS = 50


class Process(Protocol):
    """What subprocess.Popen and a forked child have in common."""

    @property
    def pid(self) -> int: ...
    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...


def end_all(job: Process, mark: str) -> None:
    """Kills the job's session and whoever bears MARK: a child may have a session of its own, as those of torchrun."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(job.pid, signal.SIGKILL)
    for _ in range(_ROUNDS):
        left = bearing(mark)
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if job.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                job.wait(timeout=0.1)
        if not left and job.poll() is not None:
            break


def bearing(mark: str) -> list[int]:
    """The living processes that bear MARK in their environment; none where there is no /proc to ask."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


@contextmanager
def ended_with_us(job: Process, mark: str) -> Iterator[None]:
    """At the end of the block nothing of the job is left, also when Ctrl-C, SIGTERM or SIGHUP ends us."""

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    before: dict[int, Any] = {}
    try:
        for number in (int(signal.SIGTERM), int(signal.SIGHUP)):
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, leave)
    except ValueError:  # outside the main thread nothing can be done about signals
        before = {}
    try:
        yield
    finally:
        end_all(job, mark)
        for number, handler in before.items():
            signal.signal(number, handler)
