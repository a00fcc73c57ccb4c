"""What a run writes down about learning rate schedules."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_LINES = 3  # calls of a schedule whose line is noted


def schedules(job: Job) -> None:
    """The order in which schedules and their optimizers have their first turns."""
    from torch.optim import lr_scheduler

    watch = _Schedules(job)
    job.on("stepped", watch.turned)
    job.on("skipped", watch.turned)
    job.on("ending", watch.ending)
    for kind in list(vars(lr_scheduler).values()):
        own = isinstance(kind, type) and issubclass(kind, lr_scheduler.LRScheduler) and "step" in vars(kind)
        if own and kind is not lr_scheduler.ReduceLROnPlateau:  # it looks back, at a metric
            job.wrap(kind, "step", watch.advancing)


class _Order:
    """Of one schedule: its calls before the optimizer's first turn, the turns in between, and which came last."""

    def __init__(self) -> None:
        self.calls = self.before = self.rounds = 0
        self.lines: list[tuple[str, int]] = []
        self.turned_last = False

    @property
    def led(self) -> bool:
        """Whether the schedule went first, once, and then always before the optimizer, from one line."""
        alternating = self.before == 1 and self.rounds == self.calls > 1 and self.turned_last
        return alternating and len(set(self.lines)) == 1 and bool(self.lines[0][1])


class _Schedules:
    """Who went first: each schedule or its optimizer."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.inside = False
        self.turns: weakref.WeakSet[Any] = weakref.WeakSet()  # optimizers that had theirs
        self.orders: weakref.WeakKeyDictionary[Any, _Order | None] = weakref.WeakKeyDictionary()
        self.of: weakref.WeakKeyDictionary[Any, list[_Order]] = weakref.WeakKeyDictionary()

    def advancing(self, original: Any) -> Any:
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            first = not self.inside and not getattr(scheduler, "_is_initial", False)
            if first and scheduler not in self.orders:
                self.meet(scheduler, told=bool(args or kwargs))
            order = self.orders.get(scheduler) if first else None
            if order is not None:
                self.called(order)
            outer, self.inside = self.inside, True
            try:
                return original(scheduler, *args, **kwargs)
            finally:
                self.inside = outer

        return step

    def meet(self, scheduler: Any, *, told: bool) -> None:
        """The first call of SCHEDULER; one that comes after a turn of the optimizer, or is told an epoch, is sound."""
        optimizer = getattr(scheduler, "optimizer", None)
        if told or optimizer is None or optimizer in self.turns:
            self.orders[scheduler] = None
        else:
            self.orders[scheduler] = order = _Order()
            self.of.setdefault(optimizer, []).append(order)

    def called(self, order: _Order) -> None:
        order.calls += 1
        order.before += not order.rounds
        order.turned_last = False
        if len(order.lines) < _LINES:
            order.lines.append(self.job.caller())

    def turned(self, optimizer: Any, _scaler: Any = None) -> None:
        self.turns.add(optimizer)
        for order in self.of.get(optimizer, ()):
            order.rounds += not order.turned_last
            order.turned_last = True

    def ending(self) -> None:
        for scheduler, order in self.orders.items():
            if order is not None and order.led:
                path, line = order.lines[0]
                named = {"schedule": type(scheduler).__name__, "optimizer": type(scheduler.optimizer).__name__}
                self.job.record("schedule-led", **named, calls=order.calls, path=path, line=line)
