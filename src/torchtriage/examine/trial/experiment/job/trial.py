"""One trial: some steps of the job under the changes that are wished, and what each of them has given."""

from __future__ import annotations

import json
import os
import random
import sys
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import to_row

from .events import Branched, Wish
from .interventions import Interventions, NotApplied

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from torchtriage.examine.run.job.events import Event
    from torchtriage.examine.run.job.job import Job

    from .interventions import Call, Delivery

REPORT = "branches.jsonl"


class Trial:
    """end: is told what has become of it, and does not return.

    in_force: changes that were made when the job started. skipped: steps that are left before the others. losses,
    before: of each step, and of those that are skipped.
    """

    def __init__(self, job: Job, wish: Wish, end: Callable[[Event], NoReturn]) -> None:
        self.job, self.wish, self._end = job, wish, end
        self.in_force: frozenset[str] = frozenset()
        self.skipped = wish.skipped
        self.before: list[list[float]] = []
        self.losses: list[list[float]] = []
        self.rates: list[float] = []
        self.nanoseconds: list[int] = []
        self._now: list[float] = []
        self._rate, self._began = 0.0, 0
        self._optimizers: set[int] = set()

    def begin(self, call: Call, delivery: Delivery) -> None:
        """The job is about to make its first CALL that it learns from, with what was delivered last."""
        if self.wish.seed is not None:
            seed(self.wish.seed)
        for event in (self.backward, self.stepping, self.iterated):
            self.job.on(event.__name__, event)
        self.call, self.delivery = call, delivery
        self._began = perf_counter_ns()
        if not self.skipped:
            self._change()

    def _change(self) -> None:
        interventions = Interventions(self.job, self.delivery, self.call, self.give_up)
        for name, value in self.wish.changes.items():
            if name in self.in_force:
                continue
            try:
                interventions.apply(name, value)
            except NotApplied as reason:
                self.give_up(str(reason))
            except Exception as error:  # noqa: BLE001 - said of the change, and the trial ends
                self.give_up(f"{type(error).__name__}: {error}")

    def failed(self, _probe: str, error: BaseException) -> NoReturn:
        """A listener of a change has raised: a trial that goes on without it would show something else."""
        self.give_up(f"{type(error).__name__}: {error}")

    def give_up(self, why: str) -> NoReturn:
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
        began, self._began = self._began, perf_counter_ns()
        if self.skipped:
            self.before.append(losses)
            self.skipped -= 1
            if not self.skipped:
                self._change()
            return
        self.losses.append(losses)
        self.rates.append(rate)
        self.nanoseconds.append(self._began - began)
        if len(self.losses) >= self.wish.steps:
            self._end(self._outcome("steps"))

    def ending(self) -> NoReturn:
        """The job has come to an end within the trial: by itself, or by an error."""
        error = getattr(sys, "last_value", None)
        why = f"{type(error).__name__}: {error}"[:300] if error is not None else ""
        self._end(self._outcome("error" if why else "job", why))

    def _outcome(self, ended: str, why: str = "") -> Branched:
        return Branched(
            number=self.wish.number,
            before=self.before,
            losses=self.losses,
            rates=self.rates,
            seconds=[each / 1e9 for each in self.nanoseconds],
            peak=self.job.accelerator.memory().get("peak"),
            optimizers=len(self._optimizers),
            ended=ended,
            why=why,
        )


def write(job: Job, event: Event) -> None:
    """Appends EVENT to the report of the trials, whole."""
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
