"""Legs of a repetition in children of a process that has imported torch already: each costs what it does itself.

`torchtriage repro` starts every leg as a process of its own, in a mirror; a test of that is in tests/interface. A child
shares the hash seed and the addresses of its parent: what comes of these cannot be seen here.
"""

from __future__ import annotations

import gc
import json
import os
import random
import runpy
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from torchtriage.examine.trial.leg.execute import Ended
from torchtriage.examine.trial.repeat import record
from torchtriage.examine.trial.repeat.pairs import HERE, Runner
from torchtriage.examine.trial.repeat.record import Told

LEFT: dict[str, Any] = {}


class Server:
    """The process that has torch; `leg` gives the exit code of a script whose record is then in FOLDER."""

    def __init__(self) -> None:
        settings = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=settings
        )

    def leg(self, script: Path, folder: Path, settings: Mapping[str, str]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        folder.mkdir(parents=True)
        given = {"script": str(script), "folder": str(folder), "settings": dict(settings)}
        self._process.stdin.write(json.dumps(given) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()


class Forked(Runner):
    """A runner whose legs are children of SERVER."""

    def __init__(self, server: Server, script: Path, folder: Path) -> None:
        super().__init__((str(script),), folder)
        self.server, self.script = server, script

    def leg(
        self, name: str, turns: int | None, wanted: Mapping[str, Any], fixed: Sequence[str] = ()
    ) -> tuple[Told, Ended]:
        del turns
        folder = self.folder / "records" / name
        code = self.server.leg(self.script, folder, self._settings(wanted, fixed))
        return record.read(folder), Ended(code, said=((folder / "said.txt").read_text()[-400:],))

    def tell(self, text: str) -> None:
        del text


def _serve() -> None:
    import numpy as np
    import torch
    import torch._dynamo
    from torch.utils import data  # noqa: F401 - as every job has it

    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        given = json.loads(line)
        child = os.fork()
        if not child:
            random.seed()
            np.random.seed()
            torch.default_generator.seed()
            os.environ.update(given["settings"])
            _become(Path(given["script"]), Path(given["folder"]))
            return
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


def _become(script: Path, folder: Path) -> None:
    file = os.open(folder / "said.txt", os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    place = folder / "work"
    place.mkdir()
    os.chdir(place)
    os.environ["TORCHTRIAGE_FOLDER"] = str(folder)
    path = HERE / "early"
    spec: Any = spec_from_file_location(
        "_torchtriage_early", path / "__init__.py", submodule_search_locations=[str(path)]
    )
    sys.modules["_torchtriage_early"] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules["_torchtriage_early"])
    sys.modules["_torchtriage_early"].begin()
    from torchtriage.examine.run.job import begin

    begin(str(folder), [str(HERE / "job")])
    sys.argv = [str(script)]
    LEFT.update(runpy.run_path(str(script), run_name="__main__"))


if __name__ == "__main__":
    _serve()
