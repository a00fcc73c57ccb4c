"""The workers of a Ray cluster, or of a Ray of this machine's own. Ray is imported only when it is asked for."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from torchtriage.core.errors import TriageError
from torchtriage.examine.artefact.engines import Told, Work
from torchtriage.examine.artefact.engines.child import answered, heard
from torchtriage.examine.artefact.engines.turns import Died

HERE = "local"
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
}


def installed() -> None:
    """Raises TriageError where Ray is not installed."""
    if find_spec("ray") is None:
        do = 'Install it by pip install "torchtriage[ray]", or read with --engine local.'
        raise TriageError("the engine ray needs the package ray, which is not installed", "--engine ray", do)


class Cluster:
    """A file is a task of one core. rooms: a task for each core that the cluster has, as it is asked."""

    def __init__(self, work: Work, address: str | None = None, workers: int | None = None) -> None:
        for name, value in _QUIET.items():
            os.environ.setdefault(name, value)
        ray: Any = import_module("ray")
        self.ray, self.work, self.workers = ray, work, workers
        self.folder = os.fsencode(Path.cwd())
        self.was_there = ray.is_initialized()
        if not self.was_there:
            _joined(ray, address or os.environ.get("RAY_ADDRESS") or HERE, workers)
        self.task = ray.remote(num_cpus=1, max_retries=0)(answered)
        self.running: dict[Hashable, str] = {}

    @property
    def rooms(self) -> tuple[int, ...]:
        cores = max(int(self.ray.cluster_resources().get("CPU", 1)), 1)
        room = min(cores, self.workers or cores)
        return room, room

    def start(self, path: str) -> Hashable:
        made: Hashable = self.task.remote(self.work.function, os.fsencode(path), self.folder)
        self.running[made] = path
        return made

    def ended(self, seconds: float) -> Iterator[tuple[Hashable, Told | Died]]:
        first, _ = self.ray.wait(list(self.running), num_returns=1, timeout=seconds)
        further, _ = self.ray.wait(list(self.running), num_returns=len(self.running), timeout=0) if first else ([], [])
        for key in further or first:
            path = self.running.pop(key)
            try:
                answer = self.ray.get(key)
            except self.ray.exceptions.RayError as error:
                yield key, Died(_how(error))
            else:
                yield key, heard(answer, path, self.work.shape)

    def end(self, key: Hashable) -> None:
        del self.running[key]
        self.ray.cancel(key, force=True)

    def close(self) -> None:
        """A Ray that was there before stays."""
        for key in list(self.running):
            with suppress(self.ray.exceptions.RayError):
                self.end(key)
        if not self.was_there:
            self.ray.shutdown()


def _joined(ray: Any, address: str, workers: int | None) -> None:
    """Joins the cluster at ADDRESS, or starts one of this machine alone; raises TriageError where there is none."""
    quiet = {"logging_level": "ERROR", "log_to_driver": False}
    try:
        if address == HERE:
            cores = workers or len(os.sched_getaffinity(0))
            ray.init(address=HERE, num_cpus=cores, include_dashboard=False, **quiet)
        else:
            # the cluster reads with this version, whichever it has; numpy and msgspec are its own
            home = str(Path(__file__).parents[3])
            ray.init(address=address, runtime_env={"py_modules": [home]}, **quiet)
    except Exception as error:
        what = f"no Ray is to be had there: {type(error).__name__}: {error}"[:300]
        do = "Give the address of a cluster that runs, host:port, and its token (RAY_AUTH_TOKEN) where it asks; "
        do += "or give none, for a Ray of this machine alone."
        raise TriageError(what, f"--address {address}", do) from error


def _how(error: Exception) -> str:
    """In one line."""
    words = (str(error).strip().splitlines() or [""])[0]
    return f"the worker that read it ended with {type(error).__name__}" + (f": {words}"[:200] if words else "")
