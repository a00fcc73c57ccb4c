"""Verbs that read or run much are processes of their own: what they print is what the command line prints."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import anyio
import msgspec
from anyio.abc import Process

from torchtriage.core.errors import NOTHING_EXAMINED, TriageError
from torchtriage.examine.confinement import VARIABLE

EVERY = 1.0  # seconds between two notifications of progress
TIMED_OUT = -getattr(signal, "SIGALRM", 0) or None  # how the warden ends; there are no jobs on Windows
HEAD, TAIL = 2_000, 8_000  # bytes of a job's output that an agent is shown
Watch = Callable[[float], Awaitable[None]]


@dataclass(frozen=True)
class Done:
    """How a command ended. answer: the JSON that it printed; said: beginning and end of its stderr."""

    code: int
    answer: dict[str, Any]
    said: str


async def call(
    words: Sequence[str],
    folder: Path,
    limit: float = 0.0,
    watch: Watch | None = None,
    log: Path | None = None,
    within: Sequence[Path] = (),
) -> Done:
    """`torchtriage WORDS` in FOLDER. WATCH is called once a second with the seconds since the start.

    LIMIT: seconds after which what it has started is ended; 0 for none. LOG: where all of its stderr is kept. WITHIN:
    folders out of which it follows no link; () for a job of the user's. Raises TriageError with what the command line
    says where it answers with no JSON. Whoever cancels this gets all processes of the command ended.
    """
    if any("\0" in word for word in words):
        raise TriageError("refused: a null byte", f"torchtriage {words[0]}", "Write plain words.")
    warden = [sys.executable, "-P", "-m", "torchtriage.interface.mcp.warden", str(limit), *words]
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as said:
        process = await anyio.open_process(
            warden,
            stdout=answer.fileno(),
            stderr=said.fileno(),
            cwd=folder,
            start_new_session=True,
            env=dict(os.environ, **{VARIABLE: os.pathsep.join(map(str, within))}) if within else None,
        )
        try:
            code = await _awaited(process, watch)
        finally:
            with anyio.CancelScope(shield=True):
                await process.aclose()
        answer.seek(0)
        found = _read(answer.read(), said, words[0])
        if log is not None:
            said.seek(0)
            with log.open("wb") as file:
                shutil.copyfileobj(said, file)
        return Done(code, found, _quote(said))


def _quote(said: IO[bytes]) -> str:
    size = said.seek(0, os.SEEK_END)
    said.seek(0)
    if size <= HEAD + TAIL:
        return said.read().decode("utf-8", "replace")
    head = said.read(HEAD).decode("utf-8", "replace")
    said.seek(size - TAIL)
    return f"{head}\n[{size - HEAD - TAIL} bytes left out]\n{said.read().decode('utf-8', 'replace')}"


async def _awaited(process: Process, watch: Watch | None) -> int:
    async with anyio.create_task_group() as tasks:
        if watch is not None:
            tasks.start_soon(_watched, watch)
        await process.wait()
        tasks.cancel_scope.cancel()
    return await process.wait()


async def _watched(watch: Watch) -> None:
    begun = anyio.current_time()
    while True:
        await watch(anyio.current_time() - begun)
        await anyio.sleep(EVERY)


def _read(printed: bytes, said: IO[bytes], verb: str) -> dict[str, Any]:
    """The JSON that a verb printed; raises TriageError with its own words where it printed none."""
    try:
        return msgspec.json.decode(printed, type=dict[str, Any])
    except msgspec.DecodeError as error:
        said.seek(0)
        raise _told(said.read().decode("utf-8", "replace"), verb) from error


def _told(said: str, verb: str) -> TriageError:
    """The three parts of an error that the command line has printed last."""
    message = said.rpartition("torchtriage: ")[2]
    what, _, rest = message.partition("\n  where: ")
    where, _, do = rest.partition("\n  do:    ")
    if do:
        return TriageError(what.strip(), where.strip(), do.strip(), NOTHING_EXAMINED)
    return TriageError(said.strip()[-500:] or "no answer", f"torchtriage {verb}", "Call it with other arguments.")
