"""Remedies that are edits, tried in a mirror: whether the job is better with one, worse, or neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isclose, isfinite

from torchtriage.examine.trial.experiment.arms import CONTROL, Arm, Contrast, Course, Courses
from torchtriage.examine.trial.experiment.questions import TRIES, Answers, Order, Plan

SAME_START = 1e-3  # of the first loss, by which two ways to compute it differ by rounding alone
FURTHER = 0.15  # of what is gained, that a remedy of the training has to gain
SHORTER = 0.03  # of a step, that a remedy of its time has to save at the near end of the interval
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
    """The orders that try each of WANTED: first with the job watched as by `run`, and then in pairs that are not."""
    for number in range(TRIES + 1):
        for arm in (CONTROL, *(each.arm for each in wanted)):
            if number and not all(_goes_on(answers.courses.found.get((each, 0))) for each in (CONTROL, arm)):
                continue
            course = yield Order(arm, number)
            if course is not None:
                answers.courses.found[arm, number] = course


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
    facts, why = [*_lengths(own, other), *_findings(own, other)], ""
    if not (own.is_told and other.is_told):
        return _weighed(facts, (), "")
    if not _starts_alike(courses, arm):
        why = (
            f"the first loss is {own.losses[0]:.4g} instead of {other.losses[0]:.4g}, before any update: it is "
            "computed otherwise, and not compared"
        )
    elif (told := courses.contrast(arm, CONTROL)) is not None and told.tries > 1:
        facts += _losses(told)
    costs = [*_times(courses, arm), *_peaks(own, other)]
    return _weighed(facts, costs, why)


def _weighed(facts: Sequence[Fact], costs: Sequence[Fact], why: str) -> Judgement:
    """WHY: the loss was not compared."""
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
    """Faults that the watched job shows in one of the two only."""
    for slug in sorted(other.faults - own.faults):
        yield f"`torchtriage run` says {slug} no more", True
    for slug in sorted(own.faults - other.faults):
        yield f"`torchtriage run` says {slug} now", False


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


def _starts_alike(courses: Courses, arm: Arm) -> bool:
    """Whether the first loss, which no update has touched, is the same in each pair: then both compute the same."""
    mine, theirs = courses.of(arm), courses.of(CONTROL)
    return all(
        isclose(mine[each].losses[0], theirs[each].losses[0], rel_tol=SAME_START)
        for each in mine.keys() & theirs.keys()
    )


def _losses(told: Contrast) -> Iterator[Fact]:
    if abs(told.value) < FURTHER or told.spread[0] <= 0 <= told.spread[1]:
        return
    now, was = (f"{each:.3g}" if isfinite(each) else "no finite number" for each in told.ends)
    yield f"the loss ends at {now} instead of {was} ({told.tries} pairs)", told.value > 0
