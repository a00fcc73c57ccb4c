"""Pickles are unpickled in a process of their own, with limits; what comes back is a small answer in JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import SpooledTemporaryFile
from threading import Timer
from typing import IO, Any, NamedTuple

from torchtriage.examine.artefact.opened import Opened, Unreadable, is_url
from torchtriage.examine.artefact.pickle.child import ENDED, LENGTH

_PROGRAM = "import sys; sys.path[:] = {path!r}; from torchtriage.examine.artefact.pickle.child import main; main()"
_LARGE = 2**22  # bytes from which on a file gets a process of its own
_ANSWER = 2**26  # bytes that an answer may have
_QUIET = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # no memory for idle threads
_CPU_SPENT = 24  # SIGXCPU


@dataclass(frozen=True)
class Limits:
    """What a process may take.

    memory: bytes for itself, and so many times the size of the file (of a snapshot some ten times, measured), but
    never more than 80 % of what the machine has left. seconds: CPU time for one file, and one more for each so many
    bytes of it (unpickling takes some 0.02 s for each MiB). packed: bytes that a packed or remote file may give: it
    is put down in a temporary file.
    """

    memory: int = 2**30
    times: int = 24
    seconds: int = 10
    each: int = 2**21
    packed: int = 2**33


@dataclass(frozen=True)
class Answer:
    """What was made of the file at PATH; value: None where it was refused, and why: in words, with the byte."""

    path: str
    value: Any = None
    why: str = ""


def answers(work: str, paths: Sequence[str], limits: Limits | None = None) -> Iterator[Answer]:
    """One for each of PATHS, in their order: what WORK ("module:function") makes of (plain data, bytes of the file).

    Nothing that a file names is imported, called or built; WORK runs in the process that has read the data, so that
    a hostile file can harm nothing but that. WORK raises ValueError for data that are not what it is for.
    """
    limits = limits or Limits()
    several: _Process | None = None
    for path in paths:
        try:
            with _stored(path, limits) as stored:
                if stored.size >= _LARGE:
                    told = _Process(work, limits, stored.size, stored.file).told()
                else:
                    several = several or _Process(work, limits, _LARGE)
                    told = several.ask(stored.file.read())
                    several = None if several.over else several
                yield _answer(path, told, stored)
        except Unreadable as error:
            yield Answer(path, why=error.why)
    if several is not None:
        several.end()


class _Stored(NamedTuple):
    """A file on this machine's disk or in memory, at its beginning. broken: why it ends before its end."""

    file: IO[bytes]
    size: int
    broken: str = ""

    def __enter__(self) -> _Stored:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


def _stored(path: str, limits: Limits) -> _Stored:
    """The file at PATH, unpacked and fetched where it has to be; raises Unreadable."""
    if not is_url(path) and Path(path).is_file():
        with suppress(OSError):
            file: Any = Path(path).open("rb", buffering=0)  # noqa: SIM115 - the process shares its position
            magic = file.read(2)
            file.seek(0)
            if magic != b"\x1f\x8b":
                return _Stored(file, os.fstat(file.fileno()).st_size)
            file.close()
    with Opened(path) as opened:
        spool: Any = SpooledTemporaryFile(max_size=_LARGE - 1)  # noqa: SIM115 - likewise
        for piece in opened.chunks():
            spool.write(piece)
            if spool.tell() > limits.packed:
                spool.close()
                raise Unreadable(f"it unpacks to more than {limits.packed / 2**30:.0f} GiB", "Unpack it by hand.")
        size = spool.tell()
        spool.seek(0)
        return _Stored(spool, size, opened.broken)


def _answer(path: str, told: dict[str, Any], stored: _Stored) -> Answer:
    """TOLD of what is STORED; what was refused, with what the opcodes tell: names and bytes."""
    if "value" in told:
        return Answer(path, told["value"])
    from torchtriage.examine.artefact.pickle.named import inspect

    stored.file.seek(0)
    said = inspect(stored.file).said
    why = str(told.get("refused") or told.get("strange"))
    return Answer(path, why=(f"{stored.broken}; " if stored.broken else "") + (f"{why} ({said})" if said else why))


class _Process:
    """One process. given: its input, a file that it reads as it is; without one it is asked for file after file."""

    def __init__(self, work: str, limits: Limits, size: int, given: IO[bytes] | None = None) -> None:
        self._seconds = limits.seconds + size // limits.each
        memory = min(limits.memory + limits.times * size, int(0.8 * _available()))
        order = {"work": work, "memory": memory, "seconds": self._seconds, "whole": given is not None}
        self.over = False
        program = _PROGRAM.format(path=[each for each in sys.path if each])
        self._child = subprocess.Popen(  # noqa: S603 - this Python with a program of ours, in which no file's word stands
            [sys.executable, "-I", "-S", "-c", program, json.dumps(order)],
            stdin=subprocess.PIPE if given is None else given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_QUIET},
        )

    def ask(self, data: bytes) -> dict[str, Any]:
        """What the process tells of the pickle DATA; when `over`, it cannot be asked again."""
        given = self._child.stdin
        if given is not None:
            with suppress(BrokenPipeError):
                given.write(len(data).to_bytes(LENGTH, "big") + data)
                given.flush()
        return self._heard()

    def told(self) -> dict[str, Any]:
        """What the process tells of its input, the last thing that it does."""
        told = self._heard()
        self.end()
        return told

    def _heard(self) -> dict[str, Any]:
        """A process that gives no answer has ended, and how is the answer."""
        clock = Timer(60 + 10 * self._seconds, self._child.kill)
        clock.start()
        try:
            told = self._read()
        finally:
            clock.cancel()
        if told is None:
            self.end()
        return told if told is not None else {"refused": self._fate()}

    def _read(self) -> dict[str, Any] | None:
        out = self._child.stdout
        length = out.read(LENGTH) if out is not None else b""
        size = int.from_bytes(length, "big")
        if out is None or len(length) < LENGTH or size > _ANSWER:
            return None
        data = out.read(size)
        told: dict[str, Any] | None = json.loads(data) if len(data) == size else None
        return told

    def _fate(self) -> str:
        code = self._child.wait()
        if code == ENDED:
            return "it tried to do what reading data never does"
        if -code == _CPU_SPENT:
            return f"to unpickle it takes more than {self._seconds} s of CPU time"
        return f"the process that unpickled it ended with {'signal' if code < 0 else 'code'} {abs(code)}"

    def end(self) -> None:
        """No more is asked."""
        self.over = True
        for pipe in (self._child.stdin, self._child.stdout):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        with suppress(subprocess.TimeoutExpired):  # one that was told that there is no more ends by itself
            self._child.wait(1)
            return
        self._child.kill()
        self._child.wait()


def _available() -> int:
    """Bytes of memory that the machine has left; 8 GiB where it does not tell."""
    with suppress(OSError, ValueError), Path("/proc/meminfo").open(encoding="ascii") as told:
        for line in told:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return 2**33
