"""What a run writes down about schedules that go on where a scaler has held a step back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import ScheduleOnSkips

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_TIMES = frozenset({3, 10, 30, 100, 1000, 10_000})


def schedules(job: Job) -> None:
    """How often a scheduler advanced right after a skipped step of its optimizer."""
    from torch.optim import lr_scheduler

    job.orderly()
    watch = _Schedules(job)
    for kind in list(vars(lr_scheduler).values()):
        own = isinstance(kind, type) and issubclass(kind, lr_scheduler.LRScheduler) and "step" in vars(kind)
        if own and kind is not lr_scheduler.ReduceLROnPlateau:  # that one follows a metric
            job.wrap(kind, "step", watch.advance)
    job.listen(watch.stepped, watch.skipped, watch.watching, watch.ending)


class _Schedules:
    """The turns of each optimizer that has met a skipped step, and the advances of its schedulers."""

    def __init__(self, job: Job) -> None:
        import weakref

        self.job = job
        self.turns: weakref.WeakKeyDictionary[Any, _Turns] = weakref.WeakKeyDictionary()
        self.every: list[_Turns] = []  # also of optimizers that are gone by the end
        self.inside = False

    def advance(self, original: Any) -> Any:
        def step(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if self.inside or not getattr(scheduler, "_step_count", 0):  # within another one, or within its making
                return original(scheduler, *args, **kwargs)
            self.inside = True
            try:
                result = original(scheduler, *args, **kwargs)
            finally:
                self.inside = False
            self.advanced(getattr(scheduler, "optimizer", None), type(scheduler).__name__)
            return result

        return step

    def advanced(self, optimizer: Any, name: str) -> None:
        turns = self.turns.get(optimizer) if optimizer is not None else None
        if turns is None:
            return
        turns.advances += 1
        if turns.skipped:
            turns.skipped = False
            turns.followed += 1
            turns.first = turns.first or (self.job.step, name, self.job.caller())
            if turns.followed in _TIMES:
                self.tell(turns)

    def of(self, optimizer: Any) -> _Turns:
        turns = self.turns.get(optimizer)
        if turns is None:
            turns = self.turns[optimizer] = _Turns()
            self.every.append(turns)
        return turns

    def stepped(self, optimizer: Any) -> None:
        turns = self.of(optimizer)
        turns.taken += 1
        turns.skipped = False

    def skipped(self, optimizer: Any, _scaler: Any) -> None:
        turns = self.of(optimizer)
        turns.skips += 1
        turns.skipped = True

    def watching(self) -> None:
        for turns in self.turns.values():
            turns.skipped = False

    def ending(self) -> None:
        for turns in self.every:
            if turns.followed:
                self.tell(turns)

    def tell(self, turns: _Turns) -> None:
        first, name, (path, line) = turns.first or (0, "", ("", 0))
        event = ScheduleOnSkips(
            scheduler=name, taken=turns.taken, skips=turns.skips, advances=turns.advances, followed=turns.followed,
            first=first, path=path, line=line,
        )  # fmt: skip
        self.job.record(event)


class _Turns:
    """Of one optimizer, in the steps that were watched."""

    def __init__(self) -> None:
        self.taken = self.skips = self.advances = self.followed = 0
        self.skipped = False  # by its last turn, and no scheduler has advanced since
        self.first: tuple[int, str, tuple[str, int]] | None = None
