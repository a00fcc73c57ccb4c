"""The record of a run, read back: what each rank wrote, and what could not be seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.detector import CannotSee, view
from torchtriage.examine.run.job.events import Clock, Device, E, Ended, Event, Rehearsal, Rested, Setup, Step, from_row
from torchtriage.examine.run.lines import Row
from torchtriage.examine.run.record.crash import Crash
from torchtriage.examine.run.series.quantiles import even

KINDS_OF_BOUNDARY = ("optimizer", "backward", "forward")
WARM = 3  # steps left out at the start of a run that has SETTLED or more: compilers and allocators warm up
SETTLED = 20
QUIET = 10  # steps in which probes compute nothing, of which so many tell enough


@dataclass(frozen=True)
class Log:
    """Lines that a job wrote, in the order in which it did, as typed events."""

    rows: tuple[Row, ...]

    def all(self, kind: type[E]) -> list[E]:
        """The events of one kind, made anew for whoever asks."""
        return [from_row(kind, row) for row in self._by_kind.get(kind.kind, ())]

    def recent(self, kind: type[E]) -> list[E]:
        """Those since the steps were last numbered from 0: earlier turns were parts of a step."""
        last = max((at for at, row in enumerate(self.rows) if row.get("kind") == Clock.kind), default=-1)
        return [from_row(kind, row) for row in self.rows[last + 1 :] if row.get("kind") == kind.kind]

    def among(self, *kinds: type[E]) -> list[E]:
        """The events of several KINDS, in the order in which they happened."""
        known = {kind.kind: kind for kind in kinds}
        return [from_row(known[kind], row) for row in self.rows if (kind := str(row.get("kind"))) in known]

    def since(self, kind: type[Event]) -> Log:
        """The lines from the first event of that KIND on; none where there is none."""
        first = next((at for at, row in enumerate(self.rows) if row.get("kind") == kind.kind), len(self.rows))
        return Log(self.rows[first:])

    def has(self, kind: type[Event]) -> bool:
        return kind.kind in self._by_kind

    def first(self, kind: type[E]) -> E | None:
        return next((from_row(kind, row) for row in self._by_kind.get(kind.kind, ())), None)

    @cached_property
    def _by_kind(self) -> dict[str, list[Row]]:
        found: dict[str, list[Row]] = {}
        for row in self.rows:
            found.setdefault(str(row.get("kind")), []).append(row)
        return found


@dataclass(frozen=True)
class RankRecord(Log):
    """What one rank wrote."""

    rank: int

    def __init__(self, rank: int, rows: tuple[Row, ...]) -> None:
        object.__setattr__(self, "rank", rank)
        object.__setattr__(self, "rows", rows)

    @property
    def steps(self) -> list[Step]:
        """The steady steps: without warm-up, steps in which a loader started, and those that hold a validation.

        The first step is warm-up, of 20 or more the first three. A step in which a loader was started is left out
        where it is the exception; so is one with more than twice the usual batches or forward passes. Of a long
        run, whose later steps were not all recorded, they are as far apart at the start as at the end.
        """
        return list(self._steady)

    @property
    def count(self) -> int:
        """How many steps have ended, those that were not recorded among them."""
        rows = self.every_step
        ended = next((row for row in reversed(self.rows) if row.get("kind") in {"end", "error"}), {})
        return max(rows[-1].step + 1, ended.get("step") or 0) if rows else 0

    @property
    def last_step(self) -> int:
        """The number of the last step in which anything was written."""
        return max((row.get("step") or 0 for row in self.rows), default=0)

    @cached_property
    def on_device(self) -> tuple[Device, ...]:
        """The steps that were timed on the device's own timeline, without warm-up; none where they are too few."""
        return self.timed_on_device(QUIET)

    def timed_on_device(self, enough: int) -> tuple[Device, ...]:
        """The same; the quiet ones alone, where there are ENOUGH."""
        rows = tuple(self.all(Device))[WARM:]
        quiet = tuple(each for each in rows if each.is_quiet)
        if len(quiet) >= enough:
            return quiet
        return rows if len(rows) >= SETTLED else ()

    @cached_property
    def every_step(self) -> tuple[Step, ...]:
        """All steps at the best boundary that was seen, also those in which nobody watched, of which few figures are
        known; a late loss stands with its own step, if that is there.
        """
        every = self.all(Step)
        best = min((_boundary(each) for each in every), key=KINDS_OF_BOUNDARY.index, default="optimizer")
        every = [each for each in every if _boundary(each) == best]
        known = {each.step for each in every}
        late = {each.loss_step: each.loss for each in every if each.loss_step in known}
        for each in every:
            if each.loss_step in known:
                each.loss = None
            each.loss = late.get(each.step, each.loss)
        told = [step for each in every for step in (*_rested(each), each)]
        return (*told, *(step for last in self.all(Rested) for step in _rested(last)))

    @property
    def watched_steps(self) -> list[Step]:
        """Those of all steps whose phases are known."""
        return [step for step in self.every_step if not step.is_at_rest]

    @cached_property
    def _steady(self) -> tuple[Step, ...]:
        watched = self.watched_steps
        rows = tuple(even(watched[WARM if len(watched) >= SETTLED else 1 :]))
        if sum(bool(row.epochs) for row in rows) * 2 < len(rows):
            rows = tuple(row for row in rows if not row.epochs)
        for count in ("batches", "forwards"):
            usual = median(getattr(row, count) for row in rows) if rows else 0
            rows = tuple(row for row in rows if getattr(row, count) <= max(2 * usual, 2))
        return rows


@dataclass(frozen=True)
class RunRecord:
    """All ranks of a run, by number; and what stood in the way of seeing more.

    baseline: what the case of the same job on one process tells, if that was given; scaling.py says what. crashes: the
    errors that ended processes, in the order in which they happened. processes: the notes of all Python processes of
    the job, and of its launchers how it ended.
    """

    ranks: tuple[RankRecord, ...]
    inconclusive: tuple[Inconclusive, ...] = ()
    baseline: Row = field(default_factory=dict)
    crashes: tuple[Crash, ...] = ()
    processes: tuple[Row, ...] = ()

    @cached_property
    def notes(self) -> Log:
        return Log(self.processes)

    @property
    def is_simulated(self) -> bool:
        """Whether the job ran on a simulated device: what it did is known, what that takes on a real one is not."""
        return any(log.has(Rehearsal) for log in (*self.ranks, self.notes))

    @property
    def ended(self) -> Ended:
        """How the launcher saw the job end, the first that saw it end badly; without a code while it runs."""
        ends = self.notes.all(Ended)
        return next((each for each in ends if each.code), ends[0] if ends else Ended())

    @property
    def step(self) -> int | None:
        """How many steps the rank that came furthest has ended; None where no process began to train."""
        counts = [rank.count for rank in self.ranks if rank.every_step or rank.has(Setup)]
        return max(counts, default=None)


@view(RunRecord, of=RunRecord)
def _whole(record: RunRecord) -> Iterable[RunRecord]:
    return [record] if record.ranks else _nothing(record)


@view(RankRecord, of=RunRecord)
def _by_rank(record: RunRecord) -> Iterable[RankRecord]:
    return record.ranks or _nothing(record)


def _nothing(record: RunRecord) -> Iterable[Any]:
    """A run that left no record has not shown that anything is well."""
    why = next(iter(record.inconclusive), Inconclusive("run/record", "no rank left a record", "Run the job again."))
    raise CannotSee(why.why, why.unblock)


def _rested(step: Step) -> list[Step]:
    """The steps just before STEP that nobody watched."""
    losses: Sequence[float | None] = step.rested_losses or [None] * step.rested
    seconds = step.rested_seconds / max(step.rested, 1)
    return [
        Step(
            step=step.step - len(losses) + number,
            seconds=seconds,
            loss=loss,
            epochs=step.rested_epochs * (number == 0),
            is_at_rest=True,
        )
        for number, loss in enumerate(losses)
    ]


def _boundary(step: Step) -> str:
    return step.boundary if step.boundary in KINDS_OF_BOUNDARY else "forward"
