"""Runs programs that somebody else wrote and says whether their checks are content.

One process imports torch, once; every program runs in a child of it, in an empty folder, with a limit of seconds. A
child has the rights of who started it: where a model's answers are run, start all of it in a container.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any

import msgspec
from msgspec import Struct

LIMIT = 30.0  # seconds for one program; ours need below 3
LONGEST = 65536  # bytes of one verdict
KEPT = {"PATH", "HOME", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV"}
FILES = 256 << 20  # bytes of one file that a program writes


class Verdict(Struct, frozen=True):
    """passed: the check was content. why: what it saw instead, or what the program raised; empty when it passed."""

    passed: bool
    why: str = ""


class Runner:
    """The process that has torch; `judge` runs one program under its check."""

    def __init__(self) -> None:
        command, env = [sys.executable, "-m", __name__], surroundings(os.environ)
        self._process = subprocess.Popen(  # noqa: S603 - this module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def __enter__(self) -> Runner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def judge(self, text: str, check: Path, limit: float = LIMIT) -> Verdict:
        """Whether CHECK, a file with a function `check`, is content with the program of that TEXT.

        LIMIT: seconds until it counts as still running.
        """
        to = _open(self._process.stdin)
        with suppress(BrokenPipeError):  # it has ended: then it answers nothing, either
            to.write(json.dumps({"text": text, "check": str(check), "limit": limit}) + "\n")
            to.flush()
        if not (line := _open(self._process.stdout).readline()):
            code = self._process.wait()
            raise RuntimeError(f"the process that runs programs has ended with {code}: is torch installed?")
        return msgspec.json.decode(line, type=Verdict)

    def close(self) -> None:
        """Ends the process; what it started has ended before."""
        with self._process as process:  # waits, and closes both ends
            _open(process.stdin).close()


def _open(end: IO[str] | None) -> IO[str]:
    if end is None:
        raise RuntimeError("a process without pipes")
    return end


def surroundings(environment: Mapping[str, str]) -> dict[str, str]:
    """What of an ENVIRONMENT a program is given: no key of a model's provider is among it."""
    kept = {name: text for name, text in environment.items() if name in KEPT or name.startswith(("LC_", "TORCH"))}
    return kept | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def serve() -> None:
    """Forks for every line on stdin: the child becomes the program, this process waits for its verdict."""
    import torch
    import torch._dynamo
    import torch.distributed
    from torch.utils import data  # noqa: F401 - as every program has it

    torch.set_num_threads(1)
    for line in sys.stdin:
        given = json.loads(line)
        with tempfile.TemporaryDirectory(prefix="program-") as folder:
            verdict = _run(given, folder)
        sys.stdout.write(msgspec.json.encode(verdict).decode() + "\n")
        sys.stdout.flush()


def _run(given: dict[str, Any], folder: str) -> Verdict:
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.close(reading)
        _become(given, folder, writing)
    os.close(writing)
    said = _read(reading, time.monotonic() + given["limit"])
    os.close(reading)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if said is None:
        return Verdict(False, f"still running after {given['limit']:g} s")
    return msgspec.json.decode(said, type=Verdict) if said else Verdict(False, "the process ended without a verdict")


def _read(end: int, until: float) -> bytes | None:
    """What is written to END up to a line's end; None when it has not come UNTIL then."""
    said = b""
    while not said.endswith(b"\n"):
        left = until - time.monotonic()
        if left <= 0 or not select.select([end], [], [], left)[0]:
            return None
        if not (part := os.read(end, LONGEST)):
            break
        said += part
    return said


def _become(given: dict[str, Any], folder: str, writing: int) -> None:
    """Runs the program under its check and ends this process; never returns."""
    os.setsid()
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILES, FILES))
    nothing = os.open(os.devnull, os.O_RDWR)
    for end in (0, 1, 2):
        os.dup2(nothing, end)
    try:
        verdict = _judged(Path(folder, "program.py"), given["text"], Path(given["check"]))
        os.write(writing, msgspec.json.encode(verdict)[: LONGEST - 1] + b"\n")
    finally:
        os._exit(0)


def _judged(path: Path, text: str, check: Path) -> Verdict:
    """BaseException: a program may also end itself, and that is no pass."""
    path.write_text(text, encoding="utf-8")
    try:
        judge = _loaded(check, "check").check
        judge(_loaded(path, "program"))
    except AssertionError as error:
        return Verdict(False, (str(error) or _last(error))[:1000])
    except BaseException as error:  # noqa: BLE001
        return Verdict(False, f"{type(error).__name__}: {error}"[:1000])
    return Verdict(True)


def _last(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip()


def _loaded(path: Path, name: str) -> ModuleType:
    """The module at PATH, compiled here: a cache could keep the program that stood there before."""
    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), module.__dict__)  # noqa: S102
    return module


if __name__ == "__main__":
    serve()
