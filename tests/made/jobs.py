"""Runs scripts under probes in children of a process that has imported torch already: a job costs what it does itself.

`torchtriage run` starts every job as a process of its own; tests of that are in tests/examine/run. Here only what the
probes record counts.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

from torchtriage import triage


class Server:
    """The process that has torch; `run` gives the exit code of a script whose record is then in FOLDER."""

    def __init__(self) -> None:
        settings = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings
        )

    def run(self, script: Path, folder: Path) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        folder.mkdir(parents=True)
        self._process.stdin.write(json.dumps({"script": str(script), "folder": str(folder)}) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        with self._process as process:  # waits, and closes both ends
            assert process.stdin is not None
            process.stdin.close()


def _serve() -> None:
    """Forks for every line on stdin; the child leaves the loop and becomes the job."""
    import torch
    from torch.utils import data  # noqa: F401 - as every job has it

    torch.set_num_threads(1)
    for line in sys.stdin:
        given = json.loads(line)
        child = os.fork()
        if not child:
            _become(Path(given["script"]), Path(given["folder"]))
            return
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _become(script: Path, folder: Path) -> None:
    for name, number in (("stdout", 1), ("stderr", 2)):
        file = os.open(folder / f"{name}.txt", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(file, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    (folder / "processes.jsonl").write_text('{"kind":"torch","pid":0,"why":""}\n')
    from torchtriage.examine.run.job import begin

    begin(str(folder), [str(path) for path in triage.probes()])
    sys.argv = [str(script)]
    runpy.run_path(str(script), run_name="__main__")


if __name__ == "__main__":
    _serve()
