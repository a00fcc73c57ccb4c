"""What a run writes down about learning rate schedules."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from .events import ScheduleLed

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_LINES = 3  # calls of a schedule whose line is noted
_CALM = 32  # calls of schedules that are known to be sound, after which calls are left alone


def schedules(job: Job) -> None:
    """The order in which schedules and their optimizers have their first turns.

    Once nobody is in doubt, calls are left alone until another schedule is made.
    """
    from torch.optim.lr_scheduler import LRScheduler

    watch = _Schedules(job)
    job.listen(watch.ending)
    job.wrap(LRScheduler, "__init__", watch.making)
    watch.follow()


class _Order:
    """Of one schedule: its calls before the optimizer's first turn, the turns in between, and which came last."""

    def __init__(self, scheduler: Any) -> None:
        self.schedule, self.optimizer = type(scheduler).__name__, type(scheduler.optimizer).__name__
        self.calls = self.before = self.rounds = 0
        self.lines: list[tuple[str, int]] = []
        self.step: tuple[str, int] = ("", 0)  # the line of the optimizer's first one
        self.turned_last = False

    @property
    def led(self) -> bool:
        """Whether the schedule went first, once, and then always before the optimizer, from one line."""
        alternating = self.before == 1 and self.rounds == self.calls > 1 and self.turned_last
        return alternating and len(set(self.lines)) == 1 and bool(self.lines[0][1])


class _Schedules:
    """Who went first: each schedule or its optimizer."""

    def __init__(self, job: Job) -> None:
        self.job, self.within, self.probe = job, job.placing, f"{job.placing}.calls"
        self.inside = self.following = False
        self.calm = 0  # calls of sound schedules since one was made
        self.sound: set[int] = set()  # ids of schedules that came after
        self.orders: weakref.WeakKeyDictionary[Any, _Order] = weakref.WeakKeyDictionary()
        self.every: list[_Order] = []  # those too whose schedule is gone
        self.of: weakref.WeakKeyDictionary[Any, list[_Order]] = weakref.WeakKeyDictionary()

    def making(self, original: Any) -> Any:
        def made(scheduler: Any, *args: Any, **kwargs: Any) -> None:
            self.follow()
            original(scheduler, *args, **kwargs)

        return made

    def follow(self) -> None:
        self.calm = 0
        if not self.following:
            self.following = True
            self.job.place(self.probe, self.place)

    def place(self, job: Job) -> None:
        from torch.optim import lr_scheduler

        for kind in list(vars(lr_scheduler).values()):
            own = isinstance(kind, type) and issubclass(kind, lr_scheduler.LRScheduler) and "step" in vars(kind)
            if own and kind is not lr_scheduler.ReduceLROnPlateau:  # it looks back, at a metric
                job.wrap(kind, "step", self.advancing)

    def listen(self, job: Job) -> None:
        """Which of both had the last turn, the end of the job tells: no step may be missing."""
        job.continuous()
        job.on("stepped", self.turned)
        job.on("skipped", self.turned)

    def settle(self) -> None:
        self.calm += 1
        if self.calm > _CALM and not self.orders:
            self.following = False
            self.job.withdraw(self.probe)

    def advancing(self, original: Any) -> Any:
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if self.inside or id(scheduler) in self.sound:
                self.settle()
                return original(scheduler, *args, **kwargs)
            if not getattr(scheduler, "_is_initial", False):
                self.called(scheduler, told=bool(args or kwargs))
            self.inside = True
            try:
                return original(scheduler, *args, **kwargs)
            finally:
                self.inside = False

        return step

    def called(self, scheduler: Any, *, told: bool) -> None:
        """One that first comes after a turn of the optimizer, or is told an epoch, is sound."""
        optimizer, order = getattr(scheduler, "optimizer", None), self.orders.get(scheduler)
        if order is None:
            if told or optimizer is None or optimizer in self.job.clock.known:
                self.sound.add(id(scheduler))
                return
            if not self.every:
                self.job.place(self.within, self.listen)
            self.orders[scheduler] = order = _Order(scheduler)
            self.every.append(order)
            self.of.setdefault(optimizer, []).append(order)
        order.calls += 1
        order.before += not order.rounds
        order.turned_last = False
        if len(order.lines) < _LINES:
            order.lines.append(self.job.caller())

    def turned(self, optimizer: Any, _scaler: Any = None) -> None:
        for order in self.of.get(optimizer, ()):
            order.rounds += not order.turned_last
            if not order.step[1]:
                order.step = self.job.caller()
            order.turned_last = True

    def ending(self) -> None:
        for order in self.every:
            if order.led:
                path, line = order.lines[0]
                self.job.record(
                    ScheduleLed(
                        schedule=order.schedule,
                        optimizer=order.optimizer,
                        calls=order.calls,
                        path=path,
                        line=line,
                        further=[(f"{order.optimizer} steps here, after its schedule", *order.step)],
                    )
                )
