"""Runs scripts under probes in children of a process that has imported torch already: a job costs what it does itself.

`torchtriage run` starts every job as a process of its own; tests of that are in tests/examine/run. Here only what the
probes record counts. A job of several ranks is that many children, which meet at a free port, as under torchrun.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any

from torchtriage import triage
from torchtriage.examine.run.launcher.notes import Notes

LEFT: dict[str, Any] = {}  # what the script that this process became has left in its module


class Server:
    """The process that has torch, and MODULES; `run` gives the exit code of a script whose record is then in FOLDER."""

    def __init__(self, *modules: str, **variables: str) -> None:
        settings = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        command = [sys.executable, __file__, *modules]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings
        )

    def run(
        self, script: Path, folder: Path, ranks: int = 0, limit: float = 60.0, hang: float | None = None,
        words: Sequence[str] = (), *, rests_from: int = 0,
    ) -> int:  # fmt: skip
        """RANKS: how many processes train together; 0 for one that was started by itself. WORDS: its arguments.
        RESTS_FROM: the step from which steps rest, as they do in a long job much later.

        When one of several has failed, the others are ended two seconds later; all of them after LIMIT seconds, and
        when all stand still, by what they tell after HANG seconds without movement.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        folder.mkdir(parents=True)
        given = {"script": str(script), "folder": str(folder), "ranks": ranks, "limit": limit, "hang": hang}
        given |= {"words": list(words), "rests_from": rests_from}
        self._process.stdin.write(json.dumps(given) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        with self._process as process:  # waits, and closes both ends
            assert process.stdin is not None
            process.stdin.close()


def _serve() -> None:
    """Forks for every line on stdin; the child leaves the loop and becomes the job.

    The first optimizer imports torch._dynamo, 1.3 s of a core, and at its end a process goes through all objects once
    more, 0.9 s, of which most are torch's: neither is repeated for every rank of every job.
    """
    import torch
    import torch._dynamo
    from torch.utils import data  # noqa: F401 - as every job has it

    for each in sys.argv[1:]:
        import_module(each)
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        given = json.loads(line)
        children = []
        for variables in _variables(given["ranks"]):
            child = os.fork()
            if not child:
                os.environ.update(variables)
                _become(given, variables.get("RANK", ""))
                return
            children.append(child)
        sys.stdout.write(f"{_awaited(children, given['limit'], Notes(Path(given['folder'], 'processes.jsonl')))}\n")
        sys.stdout.flush()


def _variables(ranks: int) -> list[dict[str, str]]:
    """What torchrun sets for each of RANKS processes on one machine."""
    if not ranks:
        return [{}]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": ranks, "LOCAL_WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [
        {name: str(value) for name, value in {**shared, "RANK": rank, "LOCAL_RANK": rank}.items()}
        for rank in range(ranks)
    ]


def _awaited(children: list[int], limit: float, notes: Notes) -> int:
    """The first exit code that is not 0, and 0 when there is none."""
    codes: list[int] = []
    looked = time.monotonic()
    ends = looked + limit
    while children:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            children.remove(child)
            codes.append(os.waitstatus_to_exitcode(status))
            if codes[-1]:
                ends = min(ends, time.monotonic() + 2.0)
        elif time.monotonic() > ends:
            for each in children:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            ends += limit
        elif time.monotonic() > looked + 0.2:
            looked = time.monotonic()
            ends = looked if notes.stands else ends
        else:
            time.sleep(0.005)
    return next((code for code in codes if code), 0)


def _become(given: dict[str, Any], rank: str) -> None:
    script, folder = Path(given["script"]), Path(given["folder"])
    for name, number in (("stdout", 1), ("stderr", 2)):
        file = os.open(folder / f"{name}{rank}.txt", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(file, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    with (folder / "processes.jsonl").open("a") as file:
        file.write('{"kind":"torch","pid":0,"why":""}\n')
    from torchtriage.examine.run.job import begin

    if rank:
        _keep_replicas()
    job = begin(str(folder), [str(path) for path in triage.probes()], hang_after=given["hang"])
    if given["rests_from"]:
        job.rest.first, job.rest.closely = given["rests_from"], 0
        job.rest.restart()
        job.governor.first = given["rests_from"]
        job.governor.restart()
    sys.argv = [str(script), *given["words"]]
    LEFT.update(runpy.run_path(str(script), run_name="__main__"))


def _keep_replicas() -> None:
    """Until the interpreter ends, also those of a function that returns.

    A DistributedDataParallel that goes while gloo's thread lets go of the last tensor waits for it for ever: it holds
    the lock that the thread needs. Beside four busy processes one job in eight ended so, watched or not.
    """
    from torch.nn.parallel import DistributedDataParallel

    replicas: list[object] = []
    make = DistributedDataParallel.__init__

    @wraps(make)
    def make_and_keep(self: DistributedDataParallel, *positional: Any, **named: Any) -> None:
        make(self, *positional, **named)
        replicas.append(self)

    DistributedDataParallel.__init__ = make_and_keep  # type: ignore[method-assign]


if __name__ == "__main__":
    _serve()
