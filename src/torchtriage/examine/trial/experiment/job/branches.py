"""Branches of a job: forks of it that go on with one thing changed, and end after some steps.

All are made before the same forward pass: they begin with the same weights, the same batch and the same states of the
generators, and the job itself has not moved.
What a branch prints is dropped; what it writes to files lands in the mirror, which nobody reads.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import from_row, to_row

from .delivery import Delivered
from .events import Branched, Influence, Waiting, Wish
from .interventions import Interventions, NotApplied
from .looks import influence
from .objective import Objective

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from torchtriage.examine.run.job.events import Event
    from torchtriage.examine.run.job.job import Job

PAUSE = 0.002  # seconds between two looks at a branch, and at the orders
LOOKS = 16  # steps between two looks at the conductor, once the job goes on
REPORT = "branches.jsonl"


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
    """The job itself. orders: a file to which lines are appended, each a wish; conductor: the process that does it."""

    def __init__(self, job: Job, orders: str) -> None:
        self.job, self.orders, self.probe = job, orders, job.placing
        self.conductor = int(os.environ["TORCHTRIAGE_CONDUCTOR"])
        self._began = _start_of(self.conductor)
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
            self._end_with_conductor()
            time.sleep(PAUSE)

    def _is_alone(self) -> bool:
        """Whether the conductor is gone; its number may be another's by then."""
        return _start_of(self.conductor) != self._began

    def _end_with_conductor(self) -> None:
        """Whoever experiments may be killed: then nothing of the job goes on, and nothing of its mirror stays.

        What is removed are the folders that were made for this leg, not TMPDIR, which a job may set for itself.
        """
        if self._is_alone():
            for folder in os.environ["TORCHTRIAGE_MIRROR"].split(os.pathsep):
                shutil.rmtree(folder, ignore_errors=True)
            os._exit(1)

    def _iterated(self, step: int) -> None:
        if step % LOOKS == 0:
            self._end_with_conductor()

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
            if time.monotonic() > until or self._is_alone():
                with suppress(ProcessLookupError):
                    os.kill(process, 9)
                os.waitpid(process, 0)
                write(self.job, Branched(number=wish.number, ended="late"))
                self._end_with_conductor()
                return
            time.sleep(PAUSE)


class Branch:
    """One fork of the job, from here to its end.

    skipped: steps that are left before its changes. losses, before: of each step, and of those that are skipped.
    """

    def __init__(self, trunk: Trunk, wish: Wish) -> None:
        self.job, self.loader, self.batch, self.wish = trunk.job, trunk.loader, trunk.batch, wish
        self.skipped = wish.skipped
        self.before: list[list[float]] = []
        self.losses: list[list[float]] = []
        self.rates: list[float] = []
        self._now: list[float] = []
        self._rate = 0.0
        self._optimizers: set[int] = set()
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
            return
        if self.wish.seed is not None:
            seed(self.wish.seed)
        for event in (self.backward, self.stepping, self.iterated):
            job.on(event.__name__, event)
        self.call = module, args, kwargs
        if not self.skipped:
            self._change()

    def _look(self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """What the answers depend on, and what the loss asks of them."""
        delivered = Delivered(self.loader, self.batch)
        found, later = influence(self.wish.number, module, args, kwargs, delivered)
        self._objective = objective = Objective(self.job, found, later, delivered if self.loader is not None else None)
        self.job.on("backward", lambda roots: self._end(objective.completed(roots)))
        self.job.on("iterated", lambda _step: self._ending())

    def _change(self) -> None:
        interventions = Interventions(self.job, self.batch, self.call, self._give_up)
        for name, value in self.wish.changes.items():
            try:
                interventions.apply(name, value)
            except NotApplied as reason:
                self._give_up(str(reason))
            except Exception as error:  # noqa: BLE001 - said of the change, and the branch ends
                self._give_up(f"{type(error).__name__}: {error}")

    def _failed(self, _probe: str, error: BaseException) -> NoReturn:
        """A listener of a change has raised: a branch that goes on without it would show something else."""
        if self._objective is not None:
            self._end(self._objective.found)
        self._give_up(f"{type(error).__name__}: {error}")

    def _give_up(self, why: str) -> NoReturn:
        """A change turns out to have no place in this job."""
        self._end(Branched(number=self.wish.number, ended="not applied", why=why[:300]))

    def backward(self, _roots: tuple[Any, ...]) -> None:
        """A backward pass begins: its loss is known by now."""
        self._now.append(self.job.loss if self.job.loss is not None else float("nan"))

    def stepping(self, optimizer: Any) -> None:
        """An optimizer is about to update: in steps that are skipped it has nothing to do it by."""
        if self.skipped:
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    parameter.grad = None
            return
        self._optimizers.add(id(optimizer))
        self._rate = max([self._rate, *(float(group.get("lr") or 0.0) for group in optimizer.param_groups)])

    def iterated(self, _step: int) -> None:
        """A step has ended."""
        losses, self._now = self._now, []
        rate, self._rate = self._rate, 0.0
        if self.skipped:
            self.before.append(losses)
            self.skipped -= 1
            if not self.skipped:
                self._change()
            return
        self.losses.append(losses)
        self.rates.append(rate)
        if len(self.losses) >= self.wish.steps:
            self._end(self._outcome("steps"))

    def _ending(self) -> None:
        """The job has come to an end within the branch: by itself, or by an error."""
        if self._objective is not None:
            self._end(self._objective.found)
        error = getattr(sys, "last_value", None)
        why = f"{type(error).__name__}: {error}"[:300] if error is not None else ""
        self._end(self._outcome("error" if why else "job", why))

    def _outcome(self, ended: str, why: str = "") -> Branched:
        return Branched(
            number=self.wish.number,
            before=self.before,
            losses=self.losses,
            rates=self.rates,
            optimizers=len(self._optimizers),
            ended=ended,
            why=why,
        )

    def _end(self, event: Branched | Influence) -> NoReturn:
        write(self.job, event)
        os._exit(0)


def _start_of(process: int) -> str:
    """When PROCESS began, in the words of the system; empty where it has ended, though its parent may not know it."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - see the guard
            state, *rest = file.read().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if state in "ZX" else rest[18]


def write(job: Job, event: Event) -> None:
    """Appends EVENT to the report of the branches, whole."""
    data = (json.dumps(to_row(event)) + "\n").encode()
    file = os.open(f"{job.writer.folder}/{REPORT}", os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        os.write(file, data)
    finally:
        os.close(file)


def seed(number: int) -> None:
    """Seeds the generators that a training draws from without being given one."""
    import torch

    torch.manual_seed(number)
    random.seed(number)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(number)


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
