"""Trials that are legs of their own: the command again for each, in a mirror of its own.

For what is decided where a job starts, as the workers of its loaders; for times, which forks of one thread do not show;
and for devices and ranks, which cannot be forked.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from torchtriage.examine.run.job.events import from_row, to_row
from torchtriage.examine.run.launcher.launch import rehearsal_environment
from torchtriage.examine.run.lines import Tail
from torchtriage.examine.run.reader import load
from torchtriage.examine.trial.experiment.arms import Course
from torchtriage.examine.trial.experiment.job.events import Branched, Wish
from torchtriage.examine.trial.experiment.job.trial import REPORT
from torchtriage.examine.trial.leg.execute import Ended, Leg, refusal
from torchtriage.examine.trial.leg.mirror import Mirror, mirrored

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torchtriage.examine.run.record import RunRecord
    from torchtriage.examine.trial.experiment.arms import Arm
    from torchtriage.examine.trial.experiment.questions import Order, Plan
    from torchtriage.examine.trial.experiment.wanted import Wanted

HERE = Path(__file__).resolve().parent


class Legs:
    """Carries out the orders of a plan, a leg for each. until: by time.monotonic, when the budget is spent.

    files: of remedies, as they are with them, by arm. faults: what the record of a job shows, and what of that costs
    time or memory; where it is there, the first try of each arm is watched by all probes.

    ended: the last leg. spent: the budget was, before the plan came to its end. seconds: that all have taken.
    """

    def __init__(
        self,
        wanted: Wanted,
        until: float,
        files: Mapping[Arm, Mapping[str, bytes]] | None = None,
        faults: Callable[[RunRecord], tuple[frozenset[str], frozenset[str]]] | None = None,
    ) -> None:
        self.wanted, self.until = wanted, until
        self.files, self.faults = files or {}, faults
        self.ended: Ended | None = None
        self.spent = self.of_times = False
        self.steps = wanted.steps
        self.seconds = 0.0
        self.number = 0

    def carry_out(self, plan: Plan, *, of_times: bool = False, steps: int | None = None) -> None:
        """All of PLAN, as far as the budget goes; the plan keeps the answers. Raises TriageError as a leg does.

        OF_TIMES: they ask for no losses, so that further tries need not begin with other batches. STEPS: of each leg,
        if fewer are enough.
        """
        self.of_times, self.steps, began = of_times, steps or self.wanted.steps, time.monotonic()
        answer: Course | None = None
        is_first = True
        try:
            while True:
                order = next(plan) if is_first else plan.send(answer)
                is_first = False
                if time.monotonic() >= self.until:
                    self.spent = True
                    return
                answer = self._course(order)
        except StopIteration:
            return
        finally:
            self.seconds += time.monotonic() - began

    def _course(self, order: Order) -> Course | None:
        self.number += 1
        self.wanted.say(f"experiment: {order}")
        with mirrored(self.wanted.folder / f"leg{self.number}") as mirror:
            for path, data in self.files.get(order.arm, {}).items():
                if not mirror.edit(path, data):
                    return Course((), ended="not applied", why=f"{path} lies in a folder that a mirror links whole")
            return self._of(mirror, order)

    def _of(self, mirror: Mirror, order: Order) -> Course | None:
        wanted = self.wanted
        wish = Wish(
            number=self.number,
            changes=dict(order.arm.changes),
            steps=self.steps,
            skipped=0 if self.of_times else order.number * max(1, wanted.steps // 4),
            seed=order.number or None,
        )
        settings = {
            "TORCHTRIAGE_WISH": json.dumps(to_row(wish)),
            "TORCHTRIAGE_CONDUCTOR": str(os.getpid()),
            "TORCHTRIAGE_MIRROR": os.pathsep.join(map(str, (mirror.place, mirror.temporary))),
            "TORCHTRIAGE_INTERVENTIONS": os.pathsep.join(map(str, wanted.interventions)),
            **rehearsal_environment(wanted.card),
        }
        left = max(1.0, self.until - time.monotonic())
        report = _Report(mirror.place / "record-trial" / REPORT)
        is_watched = self.faults is not None and not order.number
        probes = (*(wanted.probes if is_watched else ()), HERE / "job")
        leg = Leg("trial", wanted.command, mirror, probes, settings, left, report.is_there)
        self.ended = wanted.execute(leg)
        if self.ended.refused is not None:
            raise refusal(self.ended.refused, leg)
        course = report.course if report.is_there() else _without_steps(self.ended)
        self.spent = self.spent or (course is None and self.ended.late)
        if course is not None and self.faults is not None and is_watched:
            shown, wastes = self.faults(load.read(leg.record))
            course = replace(course, faults=shown, wastes=wastes)
        return course


def _without_steps(ended: Ended) -> Course | None:
    """The course of a job that has ended before its first step; None where its time was over."""
    if ended.late:
        return None
    return Course((), ended="nothing", why=ended.said[-1][:300] if ended.said and ended.code else "")


class _Report:
    """What the trial writes, once."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self.course: Course | None = None

    def is_there(self) -> bool:
        for row in self._tail.fresh():
            if row.get("kind") == Branched.kind:
                self.course = Course.of(from_row(Branched, row))
        return self.course is not None
