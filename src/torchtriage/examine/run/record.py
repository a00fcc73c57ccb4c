"""The record of a run, read back: what each rank wrote, and what could not be seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from statistics import median
from typing import Any

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.detector import CannotSee, view
from torchtriage.examine.run.crash import Crash
from torchtriage.examine.run.series import even

Event = dict[str, Any]
KINDS_OF_BOUNDARY = ("optimizer", "backward", "forward")
WARM = 3  # steps left out at the start of a run that has SETTLED or more: compilers and allocators warm up
SETTLED = 20


@dataclass(frozen=True)
class RankRecord:
    """What one rank wrote, in the order in which it happened."""

    rank: int
    events: tuple[Event, ...]

    def all(self, kind: str) -> list[Event]:
        """The events of one kind."""
        return [event for event in self.events if event.get("kind") == kind]

    @property
    def steps(self) -> list[Event]:
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
        ended = next((each for each in reversed(self.events) if each.get("kind") in {"end", "error"}), {})
        return max((rows[-1].get("step") or 0) + 1, ended.get("step") or 0) if rows else 0

    @cached_property
    def on_device(self) -> tuple[Event, ...]:
        """The steps that were timed on the device's own timeline, without warm-up; none where they are too few."""
        rows = tuple(self.all("device"))[WARM:]
        return rows if len(rows) >= SETTLED else ()

    @cached_property
    def every_step(self) -> tuple[Event, ...]:
        """All steps at the best boundary that was seen; a late loss stands with its own step, if that is there."""
        rows = self.all("step")
        best = min((_boundary(row) for row in rows), key=KINDS_OF_BOUNDARY.index, default="optimizer")
        rows = [dict(row) for row in rows if _boundary(row) == best]
        known = {row["step"] for row in rows if row.get("step") is not None}
        late = {row["loss_step"]: row.get("loss") for row in rows if row.get("loss_step") in known}
        for row in rows:
            if row.get("loss_step") in known:
                row["loss"] = None
            row["loss"] = late.get(row.get("step"), row.get("loss"))
        return tuple(rows)

    @cached_property
    def _steady(self) -> tuple[Event, ...]:
        rows = tuple(even(self.every_step[WARM if len(self.every_step) >= SETTLED else 1 :]))
        if sum(bool(row.get("epochs")) for row in rows) * 2 < len(rows):
            rows = tuple(row for row in rows if not row.get("epochs"))
        for count in ("batches", "forwards"):
            usual = median(row.get(count) or 0 for row in rows) if rows else 0
            rows = tuple(row for row in rows if (row.get(count) or 0) <= max(2 * usual, 2))
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
    baseline: Event = field(default_factory=dict)
    crashes: tuple[Crash, ...] = ()
    processes: tuple[Event, ...] = ()

    @property
    def ended(self) -> Event:
        """How the launcher saw the job end, the first that saw it end badly; nothing while it runs."""
        ends = [each for each in self.processes if each.get("kind") == "ended"]
        return next((each for each in ends if each.get("code")), next(iter(ends), {}))

    @property
    def step(self) -> int | None:
        """How many steps the rank that came furthest has ended; None where no process began to train."""
        counts = [rank.count for rank in self.ranks if rank.every_step or rank.all("setup")]
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


def _boundary(row: Event) -> str:
    boundary = row.get("boundary", "optimizer")
    return boundary if boundary in KINDS_OF_BOUNDARY else "forward"
