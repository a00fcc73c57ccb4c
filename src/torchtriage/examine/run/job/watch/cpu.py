"""The CPU time of a step, and what it waited for a CPU, of the thread that ends the steps."""

from __future__ import annotations

import os
from threading import get_native_id
from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SPAN = 100_000_000  # nanoseconds over which short steps are averaged: what is read is up to a tick, 4 ms, old


def _reader() -> Callable[[], int]:
    """What reads nanoseconds so far. The exact clock, thread_time_ns, may give the CPU away: milliseconds on a busy
    machine.
    """
    try:
        from resource import RUSAGE_THREAD, getrusage
    except ImportError:  # macOS
        return thread_time_ns

    def read() -> int:
        used = getrusage(RUSAGE_THREAD)
        return int((used.ru_utime + used.ru_stime) * 1e9)

    return read


_read = _reader()


def _waited(thread: int = 0) -> int:
    """Nanoseconds for which this thread, or the one of that native number, could have run, and others had the CPUs; 0
    where the system does not tell.
    """
    name = f"self/task/{thread}" if thread else "thread-self"
    try:
        with open(f"/proc/{name}/schedstat", "rb") as file:  # noqa: PTH123 - pathlib costs as much again
            return int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0


class Ran:
    """The time in which a thread, by its native number, ran or waited for something else than a CPU; asked by another
    one, which may wait for a CPU itself.
    """

    def __init__(self, thread: int) -> None:
        self._thread, self._left = thread, 0
        self._at, self._waited, self._asking = perf_counter_ns(), _waited(thread), _waited()

    def since(self, wanted: int) -> int:
        """Nanoseconds since it was last asked, which should have been so many ago.

        A wait is known once it has ended: its rest is taken off later ones. What the asking thread waited for a CPU
        tells nothing of the other, but what kept it otherwise, as the interpreter's lock does, was the other's work.
        """
        at, waited, asking = perf_counter_ns(), _waited(self._thread), _waited()
        ran = at - self._at - (waited - self._waited) + self._left
        longest = max(at - self._at - (asking - self._asking), wanted)
        self._at, self._waited, self._asking, self._left = at, waited, asking, min(ran, 0)
        return min(max(ran, 0), longest)


def waited() -> int:
    """Nanoseconds so far, for which this thread could have run, and had no CPU; 0 where the system does not tell."""
    return _waited()


def waited_beside() -> int:
    """Nanoseconds so far, for which the other threads of this process could have run, and had no CPU: those that
    communicate among them. 0 where the system does not tell.
    """
    mine, total = get_native_id(), 0
    try:
        for name in os.listdir("/proc/self/task"):  # noqa: PTH208
            if int(name) != mine:
                with open(f"/proc/self/task/{name}/schedstat", "rb") as file:  # noqa: PTH123
                    total += int(file.read().split()[1])
    except (OSError, ValueError, IndexError):  # one that has just ended, too: a look later will tell
        return 0
    return total


class Work:
    """CPU nanoseconds per step: of each that is long, and on average over a tenth of a second of short ones.

    queued: nanoseconds per step, over the last such span, for which the thread waited for a CPU.
    """

    def __init__(self) -> None:
        self._at, self._worked, self._waited = perf_counter_ns(), _read(), _waited()
        self.steps = self._mean = self.queued = 0  # steps: of this span, also those that nobody asks about

    def of(self, ended: int) -> int:
        """Of the step that has ENDED: until the first span has passed, the average so far."""
        self.steps += 1
        if self._mean and ended - self._at < _SPAN:
            return self._mean  # a call of the system costs as much as the rest of a step's row
        worked = max(_read() - self._worked, 0)
        if ended - self._at >= _SPAN:
            mean, waited = worked // self.steps, _waited()
            self.queued, self._waited = max(waited - self._waited, 0) // self.steps, waited
            self._mean = mean if self.steps > 1 else 0  # one long step, as the first with all imports, tells of itself
            self._at, self._worked, self.steps = ended, self._worked + worked, 0
            return mean
        if not self._mean:
            self.queued = 0
        return self._mean or worked // self.steps
