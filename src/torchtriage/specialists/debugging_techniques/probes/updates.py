"""What a run writes down about gradients that pile up, and optimizers that never step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from ._calls import calls_in_sight
from .events import Carried, Updates

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchtriage.examine.run.job.inventory.ledger import Ledger
    from torchtriage.examine.run.job.job import Job

_FIRST_STEPS = 100  # of an optimizer, in which its gradients are followed
_TIMES = frozenset({3, 10, 100, 1000, 10_000, 100_000})  # when something that keeps happening is written down again


def carried(job: Job) -> None:
    """Optimizers whose gradients pile up: used by a step, then added to by the next backward without a zero_grad.

    Only an unbroken chain counts: the same gradient tensor with the same version right after the step and right
    before the next backward. Accumulation between two steps, a GAN's two optimizers and closures break it.
    A loop clears its gradients always or never, so an optimizer's first steps tell.
    """
    job.orderly()
    watch = _Carried(job)
    job.listen(watch.backward, watch.backwarded, watch.stepped, watch.watching)


def updates(job: Job) -> None:
    """Optimizers that never step although backward keeps filling the gradients of their parameters."""
    import torch

    watch = _Updates(job)
    watch.find(job.alive(torch.optim.Optimizer))
    job.listen(watch.built, watch.ending)


class _Updates:
    """The ledgers of all optimizers. Listens until each of them has stepped, and anew when one is built."""

    def __init__(self, job: Job) -> None:
        self.job, self.turns = job, f"{job.placing} within"
        self.ledgers: list[Ledger] = []
        self.listens = False

    def find(self, older: list[Any]) -> None:
        for number, optimizer in enumerate(older, start=1):
            self.add(self.job.ledger(optimizer, number))

    def built(self, optimizer: Any) -> None:
        self.add(self.job.ledger(optimizer))

    def add(self, ledger: Ledger) -> None:
        for gone in [each for each in self.ledgers if each.optimizer() is None]:
            self.leave(gone)
        self.ledgers.append(ledger)
        if not self.listens:
            self.listens = True
            self.job.place(self.turns, self.place)

    def place(self, job: Job) -> None:
        job.listen(self.backwarded)
        job.on("stepped", self.turned)
        job.on("skipped", self.turned)

    def leave(self, ledger: Ledger) -> None:
        """Its optimizer is gone."""
        self.ledgers.remove(ledger)
        self.job.record(replace(_told(ledger), last=True))

    def backwarded(self, roots: Any) -> None:
        for ledger in self.ledgers.copy():
            if ledger.optimizer() is None:
                self.leave(ledger)
            elif not ledger.steps and ledger.filled(self.job.caller) and ledger.backwards in _TIMES:
                ledger.look_beside(self.job.leaves(roots), self.ledgers)
                ledger.unreached = calls_in_sight(self.job, "step", ledger.optimizer())
                self.job.record(_told(ledger))

    def turned(self, optimizer: Any, _scaler: Any = None) -> None:
        for ledger in self.ledgers:
            if ledger.optimizer() is optimizer:
                ledger.steps += 1
                ledger.watched, ledger.first = [], []
        if all(ledger.steps for ledger in self.ledgers):
            self.listens = False
            self.job.withdraw(self.turns)

    def ending(self) -> None:
        for ledger in self.ledgers:
            self.job.record(replace(_told(ledger), last=True))


def _told(ledger: Ledger) -> Updates:
    path, line = ledger.where or ("", 0)
    return Updates(
        optimizer=ledger.name,
        number=ledger.number,
        built=f"{ledger.built[0]}:{ledger.built[1]}",
        backwards=ledger.backwards,
        steps=ledger.steps,
        moved=ledger.moved(),
        beside=ledger.beside,
        path=path,
        line=line,
        further=ledger.further(),
    )


class _Carried:
    """The chains of all optimizers that are in their first steps."""

    def __init__(self, job: Job) -> None:
        import weakref

        self.job = job
        self.watched: weakref.WeakKeyDictionary[Any, _Chain] = weakref.WeakKeyDictionary()
        self.told: weakref.WeakSet[Any] = weakref.WeakSet()
        self.line: tuple[str, int] = ("", 0)

    def watching(self) -> None:
        for chain in self.watched.values():
            chain.unbroken = False  # what happened since the last window is not known

    def backward(self, _roots: Any) -> None:
        for chain in self.watched.values():
            chain.before_backward(self.job.late.read)

    def backwarded(self, _roots: Any) -> None:
        for chain in self.watched.values():
            if chain.after_backward():
                self.line = self.job.caller()

    def stepped(self, optimizer: Any) -> None:
        if optimizer in self.told:
            return
        chain = self.watched.setdefault(optimizer, _Chain())
        chain.after_step(lambda: self.job.with_gradient(optimizer))
        if chain.steps >= _FIRST_STEPS:
            del self.watched[optimizer]
            self.told.add(optimizer)
        if chain.running in _TIMES or (chain.running and chain.total in _TIMES):
            name = type(optimizer).__name__
            self.job.record(
                Carried(
                    optimizer=name,
                    running=chain.running,
                    total=chain.total,
                    of=chain.steps,
                    path=self.line[0],
                    line=self.line[1],
                    further=self.further(name, optimizer),
                )
            )

    def further(self, name: str, optimizer: Any) -> list[tuple[str, str, int]]:
        """Where it steps and was built, and the calls of zero_grad beside that backward, which clear nothing of it."""
        places = [(f"{name} steps here, with what earlier steps have used already", *self.job.caller())]
        others = calls_in_sight(self.job, "zero_grad")
        places += [(f"zero_grad stands here, and the gradients of {name} were not cleared", *each) for each in others]
        return [*places, (f"{name} is built here", *self.job.built.at(optimizer))]


class _Chain:
    """The gradients of one optimizer: are they still those that its last step used?"""

    def __init__(self) -> None:
        self.owners: list[Any] = []
        self.noted: list[tuple[int, int]] | None = None
        self.unbroken = self.added = self.has_values = False
        self.running = self.steps = self.total = 0

    def before_backward(self, read: Callable[[Any, Callable[[float], None]], None]) -> None:
        """Of gradients on a device, READ tells later whether they are more than zeros: they count from then on."""
        now = self.state()
        self.unbroken = self.unbroken and now is not None and now == self.noted
        if self.unbroken:
            self.has_values = self.has_values and not self.owners[0].grad.is_cpu
            for owner in self.owners:
                read(owner.grad.any().float(), self.see)
        self.unbroken = self.unbroken and self.has_values
        self.noted = now

    def see(self, value: float) -> None:
        self.has_values = self.has_values or value > 0

    def after_backward(self) -> bool:
        now = self.state()
        self.added = self.added or (self.unbroken and now != self.noted)
        self.noted = now
        return self.unbroken and self.added

    def after_step(self, with_gradient: Any) -> None:
        """WITH_GRADIENT gives the optimizer's parameters that have a gradient."""
        self.steps += 1
        self.running = self.running + 1 if self.unbroken and self.added else 0
        self.total += self.running > 0
        if self.state() is None:
            every = with_gradient()
            self.owners = [every[0], every[-1]] if every else []
        self.noted = self.state()
        self.unbroken, self.added = self.noted is not None, False

    def state(self) -> list[tuple[int, int]] | None:
        if not self.owners or any(owner.grad is None for owner in self.owners):
            return None
        return [(id(owner.grad), owner.grad._version) for owner in self.owners]
