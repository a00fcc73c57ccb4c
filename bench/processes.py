"""Scripts run to their end as processes of their own, on one thread and within a limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from torchtriage.core.case import Case

LIMIT = 180.0
NAME = "train.py"


def ended(command: Sequence[str | Path], folder: Path, limit: float = LIMIT) -> tuple[int | None, float]:
    """The exit code (None after LIMIT seconds) and the seconds it took; what it printed is in FOLDER/output.txt."""
    began = time.perf_counter()
    with (folder / "output.txt").open("ab") as output:
        process = subprocess.Popen(
            list(map(str, command)),
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        code: int | None
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            code = None
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return code, time.perf_counter() - began


def watched(script: str, ranks: int = 0, hang: int = 0) -> tuple[Case | None, int | None, float]:
    """The case that `torchtriage run` leaves of SCRIPT, the job's exit code and the seconds until all is written.

    RANKS: how many torchrun starts, if any. HANG: the seconds after which a job that stands still is judged and ended.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        job = folder / NAME
        job.write_text(script, encoding="utf-8")
        launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)) if ranks else ()
        options = ("--hang-after", str(hang), "--end-hang") if hang else ()
        run = (sys.executable, "-m", "torchtriage", "run", *options, "--out", folder / "out", "--")
        run += (sys.executable, *launcher, str(job))
        code, seconds = ended(run, folder)
        left = folder / "out" / "case.json"
        return Case.load(left) if left.exists() else None, code, seconds


def plain(python: str | Path, script: str) -> float:
    """Seconds of SCRIPT alone."""
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / NAME
        job.write_text(script, encoding="utf-8")
        return ended((python, job), Path(folder))[1]


@contextmanager
def busy(number: int) -> Iterator[None]:
    """So many processes that compute without end, beside whatever runs meanwhile."""
    neighbours = [subprocess.Popen((sys.executable, "-c", "while True: pass")) for _ in range(number)]
    try:
        yield
    finally:
        for each in neighbours:
            each.kill()
            each.wait()
