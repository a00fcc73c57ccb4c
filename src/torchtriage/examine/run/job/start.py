"""Puts the probes into a process that has just imported torch."""

from __future__ import annotations

import atexit
import os
import re
import sys
import weakref
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from multiprocessing import current_process, parent_process
from multiprocessing.util import Finalize, register_after_fork
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import events
from .hooks import (
    batches,
    clipping,
    crash,
    device,
    exceptions,
    gradients,
    optimizers,
    process_group,
    rehearsals,
    roots,
    scalers,
    setup,
    utilization,
)
from .job import Job
from .ranks import membership
from .ranks.hangs import Hangs
from .record.writer import Writer
from .watch.listeners import MACHINERY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType

HOOKS = {
    "device": device.place,  # before all that compute something, when a phase ends
    "utilization": utilization.place,
    "batches": batches.place,
    "roots": roots.place,
    "gradients": gradients.place,
    "returned": gradients.returned,
    "loss": gradients.loss,
    "built": optimizers.constructions,
    "optimizers": optimizers.steps,
    "scalers": scalers.place,
    "scale": scalers.scale,
    "clips": clipping.place,
    "setup": setup.place,
    "crash": crash.place,
    "handled": exceptions.place,
    "failures": lambda job: job.listen(job.failures.ending),
}
TIMEOUT = re.compile(r"time(?:d\s*|-|\s)?out", re.I)  # of a collective, in the words of gloo, NCCL and the store
_LAST = -1000  # among what multiprocessing finalizes, highest first


def begin(  # noqa: PLR0913 - each is an option of the launcher
    folder: str,
    probes: Sequence[str],
    steps: int | None = None,
    focus: Sequence[str] = (),
    *,
    midway: bool = False,
    hang_after: float | None = None,
    rehearsal: Any = None,
) -> Job:
    """Places the machinery's hooks and the probes in the rooms' folders PROBES; lines go to FOLDER.

    steps: leave after so many steps; the job goes on without. midway: the process may have models and optimizers.
    focus: names of the rooms whose sampled probes go on after the first steps, if not all. hang_after: seconds without
    movement after which it is written down where the job stands. rehearsal: the simulated device, if that is the job's.
    """
    writer = Writer(folder, membership.rank, lambda: setup.first_line(writer.rank))
    job = Job(writer, steps, midway=midway)
    job.governor.focus = frozenset(focus)
    if rehearsal is not None:
        job.place(f"{MACHINERY}/rehearsal", partial(rehearsals.place, rehearsal))
    for name, put in HOOKS.items():
        job.place(f"{MACHINERY}/{name}", put)
    job.hangs = Hangs(job, hang_after)
    job.place(f"{MACHINERY}/hangs", process_group.place)
    with _shared(events):
        for path in probes:
            room = Path(path).parent.name
            job.place(room, partial(_place_room, path, room))
    ended, itself = partial(_ended, job), weakref.ref(job)
    atexit.register(ended)
    job.undo(lambda: atexit.unregister(ended))
    if hasattr(os, "register_at_fork"):  # for good: nobody can take that back
        os.register_at_fork(after_in_child=lambda: _forked(itself()))
    register_after_fork(job, _begun_by_multiprocessing)
    if parent_process() is not None or getattr(current_process(), "_inheriting", False):  # the latter: being spawned
        _begun_by_multiprocessing(job)
    return job


def end(job: Job, error: BaseException | None = None) -> None:
    """The last lines, of a job that ends cleanly or with ERROR."""
    if not job.left:
        job.safely(_last_words, job, error)
    if error is not None:
        job.safely(_record_error, job, error)
    job.leave("" if error is not None else "exit")


def _last_words(job: Job, error: BaseException | None) -> None:
    """How far this process has come in its collectives; when a timeout ends it, where the others stand too."""
    if error is None:
        job.hangs.ended()
        return
    job.hangs.failed(error)
    if TIMEOUT.search(str(error)):
        job.hangs.ask()


@contextmanager
def _shared(module: ModuleType) -> Iterator[None]:
    """Under the name that MODULE has for the reader, while the rooms import it: this Python may have no torchtriage,
    or another.
    """
    name = f"torchtriage.examine.run.job.{module.__name__.rpartition('.')[2]}"
    before, sys.modules[name] = sys.modules.get(name), module
    try:
        yield
    finally:
        if before is None:
            del sys.modules[name]
        else:
            sys.modules[name] = before


def _place_room(folder: str, room: str, job: Job) -> None:
    """Every function of the room's modules whose only parameter is `job` is a probe."""
    package = f"_torchtriage_probes_{room}"
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        del sys.modules[name]  # of an earlier watch in this process
    spec = spec_from_file_location(package, Path(folder, "__init__.py"), submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} is no package")
    sys.modules[package] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules[package])
    for file in sorted(Path(folder).glob("[!_]*.py")):
        job.place(f"{room}/{file.stem}", partial(_place_theme, f"{package}.{file.stem}", room))


def _place_theme(module: str, room: str, job: Job) -> None:
    job.place_all(import_module(module), room)


def _ended(job: Job) -> None:
    """At the interpreter's end: cleanly, with the error that it has just printed, or over one that the job printed.

    A second Ctrl-C ends the last words too: the interpreter would print it with our frames, and go on as it does here.
    """
    error = getattr(sys, "last_value", None)
    with suppress(KeyboardInterrupt):
        if error is None and (told := exceptions.reason()) is not None:
            job.safely(crash.write, job, told)
        if error is not None and (awaited := exceptions.awaited(error)) is not None:
            job.safely(crash.write, job, awaited)
        end(job, error)


def _forked(job: Job | None) -> None:
    if job is not None:
        job.forked()


def _begun_by_multiprocessing(job: Job) -> None:
    """In a process of multiprocessing's: it may end by os._exit, which passes over atexit, and keeps its error."""
    Finalize(None, partial(_ended_by_multiprocessing, job), exitpriority=_LAST)


def _ended_by_multiprocessing(job: Job) -> None:
    error = sys.exc_info()[1]
    if isinstance(error, SystemExit) and error.code:
        error = error.__context__  # torch.multiprocessing.spawn hands the error to the parent and exits with 1
    if job.writer.opened:
        end(job, error if isinstance(error, Exception) else None)


def _record_error(job: Job, error: BaseException) -> None:
    """In the rank's record; where there is none, or it is closed, in the list of processes."""
    crash.write(job, crash.describe(error, job))
