"""What a run writes down about learning rates, and about the loss that each of several optimizers follows."""

from __future__ import annotations

import re
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import Rate

if TYPE_CHECKING:
    from torchtriage.examine.run.job.events import Further
    from torchtriage.examine.run.job.job import Job

_CHANGED = 1.25  # times: a rate that has changed by less is not written down again
_LINES = 200  # of one optimizer, at most
_FIRST, _LAST = 5, 32  # losses of each optimizer that are kept
_MANY = 8  # optimizers
_NAMES = re.compile(r"(?i)(?<![a-z])lr(?![a-z])|learning.?rate|(?<![a-z])rate(?![a-z])")
_NOTHING = 1e-7  # of the highest rate, moves no weight; OneCycleLR ends at 4e-6 of it


def rates(job: Job) -> None:
    """The learning rate of each optimizer at its first turn and when it has changed, and the losses around it.

    A schedule changes the rate in small steps: each quarter of it is written, and the highest one is always exact.
    """
    job.spaced()
    watch = _Rates(job)
    job.listen(watch.stepped, watch.ending)


class _Rate:
    """Of one optimizer: the rate that was written last, the highest one, and its first and last losses."""

    def __init__(self, optimizer: Any, number: int, built: tuple[str, int]) -> None:
        self.optimizer, self.number, self.built = type(optimizer).__name__, number, built
        self.built_with = optimizer.defaults.get("lr")
        self.maximizes = any(group.get("maximize") for group in optimizer.param_groups)
        self.written: float | None = None
        self.latest: float | None = None
        self.highest = 0.0
        self.lines = self.at = self.turns = 0
        self.since: int | None = None  # the step since which the rate has been next to nothing, or below
        self.returns = 0  # how often it has come back from there
        self.scheduled = False
        self.first: list[float] = []
        self.last: deque[float] = deque(maxlen=_LAST)

    def changed(self) -> bool:
        before, now = self.written, self.latest
        if now is None or self.lines >= _LINES:
            return False
        if not before or not now or (before > 0) != (now > 0):
            return before != now
        return max(now / before, before / now) >= _CHANGED

    def follow(self, rate: float | None, step: int) -> None:
        """RATE is that of STEP."""
        self.at, self.turns, self.latest = step, self.turns + 1, rate
        self.highest = max(self.highest, rate or 0.0)
        is_gone = rate is not None and rate <= _NOTHING * self.highest
        if is_gone and self.since is None:
            self.since = step
        elif not is_gone and self.since is not None:
            self.returns += self.turns > 2  # from the second on: a warm-up may begin at 0
            self.since = None

    def event(self, further: Further = ()) -> Rate:
        return Rate(
            at=self.at,
            turns=self.turns,
            optimizer=self.optimizer,
            number=self.number,
            path=self.built[0],
            line=self.built[1],
            lr=self.latest,
            highest=self.highest,
            maximizes=self.maximizes,
            since=self.since,
            returns=self.returns,
            scheduled=self.scheduled,
            losses={"first": self.first, "last": list(self.last)},
            further=further,
        )


class _Rates:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.known: weakref.WeakKeyDictionary[Any, _Rate] = weakref.WeakKeyDictionary()
        self.every: list[_Rate] = []  # also of optimizers that are gone by the end

    def stepped(self, optimizer: Any) -> None:
        rate = self.known.get(optimizer)
        if rate is None:
            if len(self.every) >= _MANY:
                return
            rate = self.known[optimizer] = _Rate(optimizer, len(self.every), self.job.built.at(optimizer))
            self.every.append(rate)
        rate.follow(_highest(optimizer), self.job.step)
        rate.scheduled = rate.scheduled or "initial_lr" in optimizer.param_groups[0]
        loss = self.job.loss
        if loss is not None:
            rate.last.append(loss)
            if len(rate.first) < _FIRST:
                rate.first.append(loss)
        if rate.changed():
            self.write(rate)

    def write(self, rate: _Rate) -> None:
        rate.written, rate.lines = rate.latest, rate.lines + 1
        self.job.record(rate.event())

    def ending(self) -> None:
        for rate in self.every:
            self.job.record(rate.event(self.line_of_rate(rate)))

    def line_of_rate(self, rate: _Rate) -> Further:
        """The line that writes the learning rate with which the optimizer was built, or the highest one."""
        for each in dict.fromkeys([rate.built_with, rate.highest]):
            path, line = self.job.line_of(each, _NAMES) if isinstance(each, float) else ("", 0)
            if line:
                return [(f"the learning rate {each:g} is written here", path, line)]
        return []


def _highest(optimizer: Any) -> float | None:
    """The highest learning rate of an optimizer's groups; None where one lies on a device: nobody waits for it."""
    rates = [group.get("lr") for group in optimizer.param_groups]
    here = [float(rate) for rate in rates if isinstance(rate, (int, float)) or _is_on_cpu(rate)]
    return max(here) if here and len(here) == len(rates) else None


def _is_on_cpu(rate: Any) -> bool:
    return getattr(getattr(rate, "device", None), "type", "") == "cpu" and rate.numel() == 1
