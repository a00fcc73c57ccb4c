"""Puts the probes into a process that has just imported torch."""

from __future__ import annotations

import atexit
import os
import sys
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import batches, gradients, roots, setup, updates
from .job import MACHINERY, Job
from .writer import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

HOOKS = {
    "batches": batches.place,
    "roots": roots.place,
    "gradients": gradients.place,
    "loss": gradients.loss,
    "optimizers": updates.optimizers,
    "scalers": updates.scalers,
    "scale": updates.scale,
    "setup": setup.place,
}


def begin(folder: str, probes: Sequence[str], steps: int | None = None) -> Job:
    """Places the machinery's hooks and the public functions of the PROBES files; lines go to FOLDER.

    steps: leave after so many steps; the job goes on without.
    """
    writer = Writer(folder, setup.rank, lambda: setup.first_line(writer.rank))
    job = Job(writer, steps)
    for name, put in HOOKS.items():
        job.place(f"{MACHINERY}/{name}", put)
    for path in probes:
        room = Path(path).parent.name
        job.place(room, partial(_place_file, path, room))
    atexit.register(_ended, job)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=job.forked)
    return job


def _place_file(path: str, room: str, job: Job) -> None:
    job.place_all(_load(path, room), room)


def _load(path: str, room: str) -> ModuleType:
    """The module at PATH, under a name that no package of the job can have."""
    name = f"_torchtriage_probes_{room}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _ended(job: Job) -> None:
    """At the interpreter's end: cleanly, or with the error that it has just printed."""
    error: Any = getattr(sys, "last_value", None)
    if error is not None and not job.left:
        job.record("error", **_described(error))
    job.leave("" if error is not None else "exit")


def _described(error: BaseException) -> dict[str, Any]:
    from . import places, private

    path, line = places.raised(error)
    return {"error": type(error).__name__, "message": private.cleaned(str(error))[:2000], "path": path, "line": line}
