"""Branches of a job: forks of it that go on with one thing changed, and end after some steps.

All are made before the same forward pass: they begin with the same weights, the same batch and the same states of the
generators, and the job itself has not moved.
What a branch prints is dropped; what it writes to files lands in the mirror, which nobody reads.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import from_row

from .conductor import Conductor
from .delivery import Delivered
from .events import Branched, Waiting, Wish
from .looks import influence
from .objective import Objective
from .trial import Trial, write

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from torchtriage.examine.run.job.events import Event
    from torchtriage.examine.run.job.job import Job

PAUSE = 0.002  # seconds between two looks at a branch, and at the orders
LOOKS = 16  # steps between two looks at the conductor, once the job goes on


def branches(job: Job) -> None:
    """Where the environment names a file of orders, the job is branched by them before its first step."""
    orders = os.environ.get("TORCHTRIAGE_ORDERS")
    if orders:
        _without_workers(job)
        trunk = Trunk(job, orders)
        job.listen(trunk.forward, trunk.backward)


def _without_workers(job: Job) -> None:
    """Loaders load in the process itself: a fork would take batches from the same pipes as the job."""
    from torch.utils.data import DataLoader

    def load_here(original: Any) -> Any:
        def __init__(loader: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            given = (*args[:4], 0, *args[5:]) if len(args) > 4 else args
            left = ("num_workers", "prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")
            original(loader, dataset, *given, **{name: value for name, value in kwargs.items() if name not in left})

        return __init__

    job.wrap(DataLoader, "__init__", load_here)


class Trunk:
    """The job itself. orders: a file to which the conductor appends lines, each a wish."""

    def __init__(self, job: Job, orders: str) -> None:
        self.job, self.orders, self.probe = job, orders, job.placing
        self.conductor = Conductor()
        self.batch: Any = None
        self.loader: Any = None
        self._read = 0
        self._is_open = self._learns = False
        job.on("batch", self._delivered)

    def _delivered(self, loader: Any, batch: Any) -> None:
        self.loader, self.batch = loader, batch

    def forward(self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A root module is about to run: the first time that the job is to learn from it, it waits."""
        if self._is_open or not self.job.learning or not (module.training or self._learns):
            return
        self._is_open = True
        why = _why_not(self.job, module)
        write(self.job, Waiting(why=why))
        wish = None if why else self._wait()
        if wish is not None:
            Branch(self, wish).begin(module, args, kwargs)
            return
        self.loader = self.batch = None
        self.job.withdraw(self.probe)
        self.job.on("iterated", self._iterated)

    def backward(self, _roots: tuple[Any, ...]) -> None:
        """A pass in evaluation mode was one of the training, as of a model for which nobody has called train()."""
        self._learns = True

    def _wait(self) -> Wish | None:
        """Does what is wished until the job may go on: None. In a branch, what is wished of that."""
        while True:
            for wish in self._new_wishes():
                if wish.goes_on:
                    return None
                process = self._fork()
                if not process:
                    return wish
                self._await(process, wish)
            self.conductor.end_if_gone()
            time.sleep(PAUSE)

    def _iterated(self, step: int) -> None:
        if step % LOOKS == 0:
            self.conductor.end_if_gone()

    def _new_wishes(self) -> list[Wish]:
        with suppress(FileNotFoundError), open(self.orders, "rb") as file:  # noqa: PTH123 - see the guard
            file.seek(self._read)
            data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self._read += len(whole)
            return [from_row(Wish, json.loads(line)) for line in whole.splitlines()]
        return []

    def _fork(self) -> int:
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which the branch does not need
            return os.fork()

    def _await(self, process: int, wish: Wish) -> None:
        until = time.monotonic() + wish.seconds
        while True:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                code = os.waitstatus_to_exitcode(status)
                if code:
                    write(self.job, Branched(number=wish.number, ended="error", why=f"it ended with {code}"))
                return
            if time.monotonic() > until or self.conductor.is_gone():
                with suppress(ProcessLookupError):
                    os.kill(process, 9)
                os.waitpid(process, 0)
                write(self.job, Branched(number=wish.number, ended="late"))
                self.conductor.end_if_gone()
                return
            time.sleep(PAUSE)


class Branch:
    """One fork of the job, from here to its end: a trial, or a look at what the answers of its model depend on."""

    def __init__(self, trunk: Trunk, wish: Wish) -> None:
        self.job, self.loader, self.batch, self.wish = trunk.job, trunk.loader, trunk.batch, wish
        self.trial = Trial(trunk.job, wish, self._end)
        self._objective: Objective | None = None

    def begin(self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The job becomes this branch: on one thread, since a fork has no others."""
        import torch

        torch.set_num_threads(1)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        job: Any = self.job
        job.dismiss()
        job.switch_off = self._failed
        _without_workers(job)
        job.writer.off = True
        job.on("ending", self._ending)
        if self.wish.look:
            self._look(module, args, kwargs)
        else:
            self.trial.begin((module, args, kwargs), (self.loader, self.batch))

    def _look(self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """What the answers depend on, and what the loss asks of them."""
        delivered = Delivered(self.loader, self.batch)
        found, later = influence(self.wish.number, module, args, kwargs, delivered)
        self._objective = objective = Objective(self.job, found, later, delivered if self.loader is not None else None)
        self.job.on("backward", lambda roots: self._end(objective.completed(roots)))
        self.job.on("iterated", lambda _step: self._ending())

    def _failed(self, probe: str, error: BaseException) -> NoReturn:
        if self._objective is not None:
            self._end(self._objective.found)
        self.trial.failed(probe, error)

    def _ending(self) -> None:
        if self._objective is not None:
            self._end(self._objective.found)
        self.trial.ending()

    def _end(self, event: Event) -> NoReturn:
        write(self.job, event)
        os._exit(0)


def _why_not(job: Job, module: Any) -> str:
    """Why the job cannot be branched; empty where it can."""
    import torch

    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return "is one of several ranks, which cannot be branched one by one"
    if any(not parameter.is_cpu for parameter in module.parameters()) or job.accelerator.kind:
        return "trains on a device, which a fork of its process cannot use"
    if not hasattr(os, "fork"):
        return "runs on a system that cannot fork"
    return ""
