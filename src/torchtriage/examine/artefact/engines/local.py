"""Processes of this machine: each reads one file at a time, and one that ends takes no other file with it."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections.abc import Hashable, Iterator
from contextlib import suppress
from typing import Any

from torchtriage.core.errors import TriageError
from torchtriage.examine.artefact.engines import Told, Work
from torchtriage.examine.artefact.engines.child import LENGTH, READY, heard
from torchtriage.examine.artefact.engines.turns import Died

_PROGRAM = "import sys; sys.path[:] = {path!r}; from torchtriage.examine.artefact.engines.child import main; main()"
_QUIET = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # each has one core


class Processes:
    """At most so many processes. A second try is alone: what a file lacked may have been memory."""

    def __init__(self, work: Work, workers: int) -> None:
        self.work, self.rooms = work, (workers, 1)
        self.free: list[_Process] = []
        self.busy: dict[Hashable, _Process] = {}
        self.told = selectors.DefaultSelector()

    def start(self, path: str) -> Hashable:
        """A new process where none is free."""
        one = self.free.pop() if self.free else _Process(self.work)
        one.ask(path)
        self.busy[one] = one
        self.told.register(one.out, selectors.EVENT_READ, one)
        return one

    def ended(self, seconds: float) -> Iterator[tuple[Hashable, Told | Died]]:
        for found, _ in self.told.select(seconds):
            one: _Process = found.data
            answer = one.answer()
            if answer == READY:
                one.started = True
                continue
            self._done(one)
            if answer is not None:
                self.free.append(one)
                yield one, heard(answer, one.path, self.work.shape)
            else:
                yield one, Died(one.fate())

    def end(self, key: Hashable) -> None:
        one = self.busy[key]
        self._done(one)
        one.end()

    def close(self) -> None:
        for one in (*self.free, *self.busy.values()):
            one.end()
        self.told.close()

    def _done(self, one: _Process) -> None:
        self.told.unregister(one.out)
        del self.busy[one]


class _Process:
    """One process. path: the file that it reads; started: whether it has come so far as to read any."""

    def __init__(self, work: Work) -> None:
        program = _PROGRAM.format(path=[each for each in sys.path if each])
        self._child: Any = subprocess.Popen(  # noqa: S603 - this Python with a program of ours, in which no file's word stands
            [sys.executable, "-I", "-S", "-c", program, work.function],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_QUIET},
            bufsize=0,
        )
        self.out: Any = self._child.stdout
        self.path, self.started = "", False

    def ask(self, path: str) -> None:
        self.path, data = path, os.fsencode(path)
        with suppress(BrokenPipeError):  # it has ended, and its output says so
            self._child.stdin.write(len(data).to_bytes(LENGTH, "big") + data)
            self._child.stdin.flush()

    def answer(self) -> bytes | None:
        """None where it has ended."""
        length = self._heard(LENGTH)
        return self._heard(int.from_bytes(length, "big")) if length else None

    def _heard(self, size: int) -> bytes | None:
        """The next SIZE bytes; None where it ended before."""
        parts = []
        while size and (part := self.out.read(size)):
            parts.append(part)
            size -= len(part)
        return None if size else b"".join(parts)

    def fate(self) -> str:
        """How it ended; raises TriageError where it never began."""
        self.end()
        code = self._child.returncode
        how = f"{'signal' if code < 0 else 'code'} {abs(code)}"
        if not self.started:
            do = "Read with --engine one, and see that this Python can start processes."
            raise TriageError(f"a process that is to read files ended with {how} before it began", "--engine local", do)
        return f"the process that read it ended with {how}" + (", as for want of memory" if code == -9 else "")

    def end(self) -> None:
        """One that has not ended by itself is killed."""
        with suppress(BrokenPipeError):
            self._child.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(0.05 if not self.path else 0)
        if self._child.returncode is None:
            self._child.kill()
            self._child.wait()
        self.out.close()
