"""A job is branched at its first step as often as a plan asks for, and then goes on; other plans take a leg a trial."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.detector import view
from torchtriage.examine.run.job.events import Rate, from_row, to_row
from torchtriage.examine.run.launcher.launch import rehearsal_environment
from torchtriage.examine.run.lines import Row, Tail
from torchtriage.examine.run.reader import load
from torchtriage.examine.run.record import RunRecord
from torchtriage.examine.trial.experiment import questions
from torchtriage.examine.trial.experiment.arms import CONTROL, Course, Courses
from torchtriage.examine.trial.experiment.job.events import Branched, Influence, Waiting, Wish
from torchtriage.examine.trial.experiment.job.trial import REPORT
from torchtriage.examine.trial.experiment.legs import Legs
from torchtriage.examine.trial.experiment.questions import Answers, plan
from torchtriage.examine.trial.experiment.wanted import BRANCHED, Wanted
from torchtriage.examine.trial.leg.execute import Ended, Leg, refusal
from torchtriage.examine.trial.leg.mirror import mirrored

HERE = Path(__file__).resolve().parent
PEAK_STEPS = 8  # that show the most memory: from the second on the states of the optimizer are there, too
BEYOND = 8  # times the steps of a branch, for which the job itself is watched afterwards
FELL = 0.99  # of its highest value, below which a rate is on its way down
NO_DEVICE = "the job uses no device whose memory is counted"
REHEARSE = "Rehearse it on a simulated one: --accelerator sim --card 24GiB."
SHARE = 0.2  # of the budget that is left, which one branch may take at most


@dataclass(frozen=True)
class Experiment:
    """What an experiment has shown. steps: that each trial was to do. why: the job could not be branched.

    ended: the job itself, or the last leg. record: of the job itself, as far as it went on afterwards. influences:
    what the answers of the models depend on. seconds: that all trials took. spent: the budget was. paces, peaks: what
    the legs have shown, which were to tell times and the most memory; in_legs: the answers come from legs, too.
    """

    steps: int
    answers: Answers = field(default_factory=Answers)
    paces: Answers = field(default_factory=Answers)
    peaks: Answers = field(default_factory=Answers)
    in_legs: bool = False
    ended: Ended | None = None
    record: RunRecord | None = None
    influences: tuple[Influence, ...] = ()
    why: str = ""
    seconds: float = 0.0
    spent: bool = False
    taken: dict[type, Any] = field(default_factory=dict)

    @property
    def courses(self) -> Courses:
        return self.answers.courses

    @property
    def has_seen(self) -> bool:
        """Whether any branch has shown anything."""
        return bool(self.influences or self.courses.of(CONTROL) or self.paces.courses.of(CONTROL) or self.has_peaks)

    @property
    def has_peaks(self) -> bool:
        """Whether a device has counted the memory of any leg, or was too small for it."""
        return any(each.peak is not None or each.full for each in self.peaks.courses.found.values())

    @property
    def has_courses(self) -> bool:
        """Whether the losses of the job are known, or were asked for."""
        return bool(self.courses.of(CONTROL)) or not (self.paces.courses.of(CONTROL) or self.peaks.courses.found)

    @property
    def rate(self) -> Rate | None:
        """The learning rate of the job's first optimizer, and where that is built."""
        ranks = self.record.ranks if self.record else ()
        return next((rate for rank in ranks if (rate := rank.first(Rate)) is not None), None)

    @property
    def highest_rate(self) -> float | None:
        """The highest rate of that optimizer by the job's own schedule; None where it may still have been rising.

        Changes of a quarter are written down: a rate of which none was in the last half of the time has arrived.
        """
        ranks = self.record.ranks if self.record else ()
        for rank in ranks:
            rates = [each for each in rank.all(Rate) if not each.number]
            if not rates:
                continue
            last, before = rates[-1], rates[-2].at if len(rates) > 1 else 0
            is_whole = self.ended is not None and not self.ended.stopped and not self.ended.late
            has_fallen = last.lr is not None and last.lr < FELL * last.highest
            return last.highest if is_whole or has_fallen or before < last.at / 2 else None
        return None

    @property
    def unseen(self) -> tuple[Inconclusive, ...]:
        """What stood in the way of trying more."""
        return tuple(_unseen(self))


@view(Experiment, of=Experiment)
def _whole(experiment: Experiment) -> list[Experiment]:
    return [experiment]


def experiment(wanted: Wanted) -> Experiment:
    """Runs the command in mirrors and tries what is wanted. Raises TriageError as a leg does."""
    legs, found = Legs(wanted, time.monotonic() + wanted.budget), Experiment(wanted.steps)
    if wanted.recipes & BRANCHED or wanted.in_branches:
        found = _branched(wanted)
        if found.why:
            legs.carry_out(plan(found.answers, wanted.recipes & {"stability"}, wanted.in_branches))
    if "speed" in wanted.recipes or (wanted.in_legs and "memory" not in wanted.recipes):
        legs.carry_out(questions.paces(found.paces, wanted.in_legs), of_times=True)
    if "memory" in wanted.recipes:
        legs.carry_out(questions.peaks(found.peaks, wanted.in_legs), of_times=True, steps=PEAK_STEPS)
    return replace(
        found,
        ended=found.ended or legs.ended,
        seconds=found.seconds + legs.seconds,
        spent=found.spent or legs.spent,
        in_legs=bool(found.why),
    )


def _branched(wanted: Wanted) -> Experiment:
    """Runs the command once and branches it before its first step."""
    with mirrored(wanted.folder / "leg") as mirror:
        orders = mirror.place / "orders.jsonl"
        settings = {
            "TORCHTRIAGE_ORDERS": str(orders),
            "TORCHTRIAGE_CONDUCTOR": str(os.getpid()),
            "TORCHTRIAGE_MIRROR": os.pathsep.join(map(str, (mirror.place, mirror.temporary))),
            "TORCHTRIAGE_STEPS": str(BEYOND * wanted.steps),
            "TORCHTRIAGE_INTERVENTIONS": os.pathsep.join(map(str, wanted.interventions)),
            **rehearsal_environment(wanted.card),
        }
        talk = _Dialogue(wanted, mirror.place / "record-experiment" / REPORT, orders)
        probes = (*wanted.probes, HERE / "job")
        leg = Leg("experiment", wanted.command, mirror, probes, settings, wanted.budget, talk.proceed)
        ended = wanted.execute(leg)
        if ended.refused is not None:
            raise refusal(ended.refused, leg)
        return talk.found(ended, load.read(leg.record))


class _Dialogue:
    """Reads what the job reports, and answers with the next order of the plan."""

    def __init__(self, wanted: Wanted, report: Path, orders: Path) -> None:
        self.wanted, self.report, self.orders = wanted, report, orders
        self._report = Tail(report)
        self.answers = Answers()
        self.plan = plan(self.answers, wanted.recipes, wanted.in_branches)
        self.influences: list[Influence] = []
        self.why, self.is_over, self.spent = "", False, False
        self.began = time.monotonic()
        self._branching = self._branched = 0.0
        self._number = 0

    def proceed(self) -> bool:
        """Whether the job need not go on; asked again and again while it runs."""
        for row in self._report.fresh():
            self._heard(row)
        return self.is_over and (self.spent or self._left <= 0 or self._is_watched())

    def found(self, ended: Ended, record: RunRecord) -> Experiment:
        """What is known in the end."""
        for row in self._report.fresh():
            self._heard(row)
        seconds = self._branched - self._branching if self._number else 0.0
        return Experiment(
            self.wanted.steps,
            self.answers,
            ended=ended,
            record=record,
            influences=tuple(self.influences),
            why=self.why,
            seconds=seconds,
            spent=self.spent,
        )

    @property
    def _left(self) -> float:
        """Seconds of the budget."""
        return self.wanted.budget - (time.monotonic() - self.began)

    def _is_watched(self) -> bool:
        """Whether the probes have left the job."""
        return any(b'"kind":"end"' in path.read_bytes()[-4096:] for path in self.report.parent.glob("rank*.jsonl"))

    def _heard(self, row: Row) -> None:
        kind = row.get("kind")
        if kind == Waiting.kind:
            self.why = from_row(Waiting, row).why
            self._branching = time.monotonic()
            if self.why:
                self.is_over = True
            else:
                self._next(None, is_first=True)
        elif kind in (Branched.kind, Influence.kind) and row.get("number") == self._number:
            self._next(self._answered(row))

    def _answered(self, row: Row) -> Course | None:
        if row.get("kind") == Influence.kind:
            self.influences.append(from_row(Influence, row))
            return None
        return Course.of(from_row(Branched, row))

    def _next(self, answer: Course | None, *, is_first: bool = False) -> None:
        self.spent, self._branched = self._left <= 0, time.monotonic()
        try:
            if self.spent:
                raise StopIteration
            order = next(self.plan) if is_first else self.plan.send(answer)
        except StopIteration:
            self.is_over = True
            self._write(Wish(goes_on=True))
            return
        self._number += 1
        self.wanted.say(f"experiment: {order}")
        self._write(
            Wish(
                number=self._number,
                look=order.look,
                changes=dict(order.arm.changes),
                steps=self.wanted.steps,
                skipped=order.number * max(1, self.wanted.steps // 4),
                seed=order.number or None,
                seconds=max(1.0, SHARE * self._left),
            )
        )

    def _write(self, wish: Wish) -> None:
        with self.orders.open("a", encoding="utf-8") as file:
            file.write(json.dumps(to_row(wish)) + "\n")


def _unseen(found: Experiment) -> Sequence[Inconclusive]:
    name = "trial/experiment"
    told: list[Inconclusive] = []
    if found.why:
        left = "what its model depends on was not asked" if found.in_legs else "nothing was tried"
        told.append(Inconclusive(name, f"the job {found.why}: {left}", "Run it on one process on the CPU, if you can."))
    elif not found.has_seen and found.peaks.courses.found:
        told.append(Inconclusive(name, NO_DEVICE, REHEARSE))
    elif not found.has_seen:
        why = f": {found.ended.said[-1][:200]}" if found.ended and found.ended.said and found.ended.code else ""
        way = "Give the command that trains, as it runs today."
        told.append(Inconclusive(name, f"no step of a training was seen{why}", way))
    if found.spent:
        told.append(Inconclusive(name, "the budget was spent before all was tried", "A longer --budget."))
    return told
