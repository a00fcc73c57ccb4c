from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import Server

from torchtriage.examine.run.job import Job, begin
from torchtriage.examine.run.launcher.launch import environment, prepared

Events = list[dict[str, Any]]

# A process goes through all objects once more at its end, most of them torch's: 1 s of a core that no test looks at.
AT_ONCE = "\nimport gc\ngc.freeze()\n"


def lines(path: Path) -> Events:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def jobs() -> list[Job]:
    """Those that watch this very process."""
    return []


@pytest.fixture
def watch(tmp_path: Path, jobs: list[Job]) -> Iterator[Callable[..., Job]]:
    """Puts probes into this very process; whatever happens, they are gone after the test."""

    def put(*probes: Path, steps: int | None = None) -> Job:
        jobs.append(begin(str(tmp_path), [str(path) for path in probes], steps))
        return jobs[-1]

    yield put
    for job in jobs:
        job.leave("test")
        job.tidy()


@pytest.fixture
def events(tmp_path: Path, jobs: list[Job]) -> Callable[..., Events]:
    """What rank 0 of this process has recorded so far, of one kind or all."""

    def read(kind: str | None = None) -> Events:
        for job in jobs:
            job.writer.flush()
        path = tmp_path / "rank0.jsonl"
        return [each for each in (lines(path) if path.exists() else []) if kind in (None, each["kind"])]

    return read


class Trial:
    """A job that was run to its end in a process of its own, and what it left."""

    def __init__(self, folder: Path, done: subprocess.CompletedProcess[str]) -> None:
        self.folder = folder
        self.code, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr

    def events(self, kind: str | None = None, file: str = "rank0.jsonl") -> Events:
        path = self.folder / file
        return [each for each in (lines(path) if path.exists() else []) if kind in (None, each["kind"])]

    @property
    def notes(self) -> list[str]:
        path = self.folder / "processes.jsonl"
        return [each["kind"] for each in lines(path)] if path.exists() else []


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Trial]:
    """Runs Python source as a job under probes, as `launch` sets it up, and catches its output."""

    def run(
        source: str,
        *options: str,
        probes: tuple[Path, ...] = (),
        steps: int | None = None,
        watched: bool = True,
        **extra: str,
    ) -> Trial:
        place = tmp_path_factory.mktemp("job")
        (place / "train.py").write_text(source + AT_ONCE)
        outer = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", **extra}
        inner = environment(outer, prepared(place / "run"), probes, steps) if watched else outer
        done = subprocess.run(
            [sys.executable, *options, "train.py"], cwd=place, env=inner, capture_output=True, text=True, timeout=120
        )
        return Trial(place / "run", done)

    return run


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    server = Server("torch", "torch._dynamo", "torch.utils.data")
    yield server
    server.close()


@pytest.fixture(scope="module")
def fork(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Callable[..., Trial]:
    """The same in a child of a process that has torch: a twentieth of the time of a Python of its own."""

    def fork(source: str, steps: int | None = None) -> Trial:
        place = tmp_path_factory.mktemp("job")
        (place / "train.py").write_text(source)
        settings = environment({}, prepared(place / "run"), (), steps)
        return Trial(place / "run", server.run("train.py", place=place, **settings))

    return fork


@pytest.fixture(scope="module")
def run_ranks(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[Trial]]:
    """The same for a job of two ranks, with what torchrun sets for each: one trial for each rank."""

    def run(source: str, *, probes: tuple[Path, ...] = (), watched: bool = True) -> list[Trial]:
        place = tmp_path_factory.mktemp("job")
        (place / "train.py").write_text(source + AT_ONCE)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        outer = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
        outer |= {"MASTER_PORT": port}
        shared = environment(outer, prepared(place / "run"), probes, None) if watched else outer
        started = [
            subprocess.Popen(
                [sys.executable, "train.py"],
                cwd=place,
                env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in (0, 1)
        ]
        said = [process.communicate(timeout=120) for process in started]
        return [
            Trial(place / "run", subprocess.CompletedProcess(process.args, process.returncode, out, error))
            for process, (out, error) in zip(started, said, strict=True)
        ]

    return run
