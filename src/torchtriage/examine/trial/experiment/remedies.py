"""Remedies that are edits, tried in a mirror: whether the job is better with one, worse, or neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isclose, isfinite
from statistics import fmean

from torchtriage.examine.trial.experiment.arms import CONTROL, Arm, Contrast, Course, Courses
from torchtriage.examine.trial.experiment.questions import TRIES, Answers, Order, Plan

SAME_START = 1e-3  # of the first loss, by which two ways to compute it differ by rounding alone
FURTHER = 0.15  # of what is gained, that a remedy of the training has to gain
SHORTER = 0.03  # of a step, that a remedy of its time has to save at the near end of the interval
OPEN = 0.1  # of a step, that a remedy saves or costs in the mean, from which an interval that shows neither is said
SMALLER = 0.02  # of the peak of the device's memory
NOT_APPLIED = "not applied"
FAILED = ("error", "nothing")  # how a trial ends that comes to no step, or not to all of them


Fact = tuple[str, bool]
"""What is otherwise with a remedy, in words, and whether that is better."""


class Verdict(StrEnum):
    HELPS = "helps"
    HARMS = "harms"
    SAME = "no difference"
    UNKNOWN = "not known"


@dataclass(frozen=True)
class Remedy:
    """What a finding proposes. finding: its fingerprint; slug: of its page; title: of the remedy; path, line: where.

    files: those that it changes, as they would be, by their paths in the working folder.
    """

    finding: str
    slug: str
    title: str
    path: str
    line: int
    files: Mapping[str, bytes]

    @property
    def arm(self) -> Arm:
        return Arm(remedy=f"{self.slug} at {self.path}:{self.line}")


@dataclass(frozen=True)
class Judgement:
    """What a trial says of a remedy. facts: each in words; worse: those that speak against it."""

    verdict: Verdict
    facts: tuple[str, ...] = ()
    worse: tuple[str, ...] = ()


def remedies(answers: Answers, wanted: Sequence[Remedy]) -> Plan:
    """The orders that try each of WANTED: first with the job watched as by `run`, and then in pairs that are not.

    As many pairs again where the times of a remedy differ, and too few steps tell by how much: on a busy machine.
    """
    courses, arms = answers.courses, [each.arm for each in wanted]
    for number in range(2 * TRIES + 1):
        if number > TRIES:
            arms = [arm for arm in arms if _is_open(courses.saved(arm, CONTROL))]
        for arm in (CONTROL, *arms) if arms else ():
            if number and not all(_goes_on(courses.found.get((each, 0))) for each in (CONTROL, arm)):
                continue
            course = yield Order(arm, number)
            if course is not None:
                courses.found[arm, number] = course


def judge(courses: Courses, arm: Arm) -> Judgement:
    """What the courses of ARM beside the control say.

    What is right counts before what is fast: a training that learns at last may take longer for each step. One that is
    slower or larger for nothing harms.
    """
    own, other = courses.found.get((arm, 0)), courses.found.get((CONTROL, 0))
    if own is None or other is None:
        return Judgement(Verdict.UNKNOWN, ("it was not tried: the budget was spent",))
    if own.ended == NOT_APPLIED:
        return Judgement(Verdict.UNKNOWN, (f"it was not tried: {own.why}",))
    if _has_failed(own) or _has_failed(other):
        return _of_failures(own, other)
    facts, gone = [*_lengths(own, other), *_findings(own, other)], [*_gone(own, other)]
    if not (own.is_told and other.is_told):
        return _weighed([*facts, *gone], (), "")
    told, why = courses.contrast(arm, CONTROL), _why_not_compared(courses, arm)
    losses = [*_finite(courses, arm)]
    if not losses and not why and told is not None and told.tries > 1:
        losses = [*_losses(told)]
    costs = [*_times(courses, arm), *_peaks(own, other)]
    if losses or why:
        return _weighed([*facts, *gone, *losses], costs, "" if losses else why)
    found = _weighed(facts, costs, _undecided(courses.saved(arm, CONTROL)))
    seen = tuple(f"{fact}, and the loss is no better" for fact, _ in gone)
    return replace(found, facts=(*found.facts, *seen))


def _why_not_compared(courses: Courses, arm: Arm) -> str:
    """Why the course of the loss says nothing; empty where it may be held against that without the edit."""
    mine, theirs = courses.of(arm), courses.of(CONTROL)
    if any(each.optimizers > 1 for each in (*mine.values(), *theirs.values())):
        return "several optimizers take turns: a loss of a game need not fall, and is not compared"
    for number in sorted(mine.keys() & theirs.keys()):
        own, other = mine[number].losses[0], theirs[number].losses[0]
        if not isclose(own, other, rel_tol=SAME_START):
            return (
                f"the first loss is {own:.6g} instead of {other:.6g}, before any update: it is computed otherwise, and "
                "not compared"
            )
    return ""


def _finite(courses: Courses, arm: Arm) -> Iterator[Fact]:
    """Where each loss of the one ends in a number and none of the other does, however they begin."""
    mine, theirs = ([isfinite(each.end) for each in courses.of(which).values()] for which in (arm, CONTROL))
    if all(mine) and not any(theirs):
        yield f"the loss ends at {_usual(courses, arm):.3g} instead of no finite number ({len(mine)} tries)", True
    elif all(theirs) and not any(mine):
        yield f"the loss ends at no finite number instead of {_usual(courses, CONTROL):.3g} ({len(mine)} tries)", False


def _usual(courses: Courses, arm: Arm) -> float:
    return fmean(each.end for each in courses.of(arm).values())


def _undecided(told: Contrast | None) -> str:
    """What the times leave open; empty where they do not."""
    if told is None or not _is_open(told):
        return ""
    low, high = -told.spread[1], -told.spread[0]
    return (
        f"the time of a step varies too much: {-told.value:+.0%} with it, 95 % interval {low:+.0%} to {high:+.0%}; try "
        "it on a machine with less other work, or with more --steps"
    )


def _is_open(told: Contrast | None) -> bool:
    """Whether the time of a step seems to be another one, and its interval shows neither less nor more."""
    return (
        told is not None
        and told.tries >= TRIES
        and abs(told.value) >= OPEN
        and told.spread[0] < SHORTER
        and told.spread[1] > -SHORTER
    )


def _weighed(facts: Sequence[Fact], costs: Sequence[Fact], why: str) -> Judgement:
    """WHY: something that may be better or worse is not known."""
    better, worse = ([fact for fact, is_better in facts if is_better is wanted] for wanted in (True, False))
    saved, lost = ([fact for fact, is_better in costs if is_better is wanted] for wanted in (True, False))
    if worse:
        return Judgement(Verdict.HARMS, (*better, *saved, *filter(None, [why])), (*worse, *lost))
    if better:
        return Judgement(Verdict.HELPS, (*better, *saved, *(f"it costs: {each}" for each in lost)))
    if lost:
        return Judgement(Verdict.HARMS, (*saved, *filter(None, [why])), tuple(lost))
    if why:
        return Judgement(Verdict.UNKNOWN, (why, *saved))
    return Judgement(Verdict.HELPS if saved else Verdict.SAME, tuple(saved))


def _goes_on(course: Course | None) -> bool:
    """Whether there is more to be seen than in its first try."""
    return course is None or not (_has_failed(course) or course.ended == NOT_APPLIED)


def _has_failed(course: Course | None) -> bool:
    return course is not None and course.ended in FAILED


def _of_failures(own: Course, other: Course) -> Judgement:
    """Where the job fails with the remedy, or without it."""
    if not _has_failed(own):
        return Judgement(Verdict.HELPS, (f"{_end(own)} instead of ending {_end(other)}",))
    if not _has_failed(other):
        return Judgement(Verdict.HARMS, (), (f"it ends {_end(own)}",))
    if len(own.losses) == len(other.losses) and own.why == other.why:
        return Judgement(Verdict.SAME, (f"it ends {_end(own)} as before",))
    return Judgement(Verdict.UNKNOWN, (f"it ends {_end(own)}, and {_end(other)} without the edit",))


def _end(course: Course) -> str:
    if not _has_failed(course):
        return f"{_steps(course)} run"
    after = f"after {_steps(course)}" if course.losses else "before its first step"
    return f"{after}: {course.why}" if course.why else after


def _lengths(own: Course, other: Course) -> Iterator[Fact]:
    """Steps that are done in one of the two only, though both end without an error."""
    steps, had = len(own.losses), len(other.losses)
    if steps != had:
        yield f"the job comes to {_steps(own)} instead of {had}", steps > had


def _steps(course: Course) -> str:
    return f"{len(course.losses)} {'step' if len(course.losses) == 1 else 'steps'}"


def _findings(own: Course, other: Course) -> Iterator[Fact]:
    """Faults that the watched job shows with the edit only, and what cost something without it."""
    for slug in sorted(other.wastes - own.faults):
        yield f"`torchtriage run` says {slug} no more", True
    for slug in sorted(own.faults - other.faults):
        yield f"`torchtriage run` says {slug} now", False


def _gone(own: Course, other: Course) -> Iterator[Fact]:
    """Faults of the training that the job no longer shows. An edit may hide one from `run`: where the losses can be
    compared these decide.
    """
    for slug in sorted(other.faults - other.wastes - own.faults):
        yield f"`torchtriage run` says {slug} no more", True


def _times(courses: Courses, arm: Arm) -> Iterator[Fact]:
    told = courses.saved(arm, CONTROL)
    if told is None or told.tries < TRIES or (told.spread[0] < SHORTER and told.spread[1] > -SHORTER):
        return
    now, was = (f"{1000 * each:.3g}" for each in told.ends)
    low, high = -told.spread[1], -told.spread[0]
    yield f"step {was} to {now} ms ({-told.value:+.0%}, 95 % interval {low:+.0%} to {high:+.0%})", told.value > 0


def _peaks(own: Course, other: Course) -> Iterator[Fact]:
    if not own.peak or not other.peak or abs(own.peak / other.peak - 1) < SMALLER:
        return
    now, was = (f"{each / 2**20:.4g}" for each in (own.peak, other.peak))
    yield f"peak memory {was} to {now} MiB", own.peak < other.peak


def _losses(told: Contrast) -> Iterator[Fact]:
    if not any(map(isfinite, told.ends)) or abs(told.value) < FURTHER or told.spread[0] <= 0 <= told.spread[1]:
        return
    now, was = (f"{each:.3g}" if isfinite(each) else "no finite number" for each in told.ends)
    yield f"the loss ends at {now} instead of {was} ({told.tries} pairs)", told.value > 0
