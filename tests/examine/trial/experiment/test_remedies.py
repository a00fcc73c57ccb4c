"""What the courses of a remedy beside the job as it is say of it, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from torchtriage.examine.trial.experiment.arms import CONTROL, Arm, Course, Courses
from torchtriage.examine.trial.experiment.questions import TRIES, Answers
from torchtriage.examine.trial.experiment.remedies import Remedy, Verdict, judge, remedies

EDIT = Remedy("f1", "a-fault", "Mend it", "train.py", 3, {"train.py": b""})
STEPS = 16
LIKE = Course(tuple(2.0 - step / STEPS for step in range(STEPS)), seconds=(0.01,) * STEPS, peak=100 << 20)


def faster(course: Course, times: float) -> Course:
    return replace(course, seconds=tuple(each / times for each in course.seconds))


def ending(course: Course, end: float) -> Course:
    """COURSE with the same first loss, and END for its last half."""
    return replace(course, losses=(*course.losses[: STEPS // 2], *[end] * (STEPS // 2)))


FAILED = Course((), ended="nothing", why="AttributeError: no svd")
X = frozenset(("x",))
FAULTY = replace(LIKE, faults=X)
NAN = (2.0, *[float("nan")] * (STEPS - 1))
CASES = {
    "nothing is otherwise": (LIKE, LIKE, Verdict.SAME, ""),
    "a step takes half as long": (LIKE, faster(LIKE, 2), Verdict.HELPS, "step 10 to 5 ms (-50%"),
    "a step takes twice as long": (LIKE, faster(LIKE, 0.5), Verdict.HARMS, "step 10 to 20 ms (+100%"),
    "the loss falls further": (LIKE, ending(LIKE, 0.2), Verdict.HELPS, "the loss ends at 0.2 instead of 1.16"),
    "the loss stays": (LIKE, ending(LIKE, 2.0), Verdict.HARMS, "the loss ends at 2 instead of"),
    "the loss explodes": (LIKE, ending(LIKE, float("inf")), Verdict.HARMS, "no finite number"),
    "another loss": (LIKE, replace(LIKE, losses=(0.5,) * STEPS), Verdict.UNKNOWN, "is 0.5 instead of 2, before any"),
    "it runs at last": (FAILED, LIKE, Verdict.HELPS, "16 steps run instead of ending before its first step: Attr"),
    "it runs no more": (LIKE, FAILED, Verdict.HARMS, "it ends before its first step: AttributeError"),
    "it fails as before": (FAILED, FAILED, Verdict.SAME, "as before"),
    "it fails otherwise": (FAILED, replace(FAILED, why="NameError"), Verdict.UNKNOWN, "NameError"),
    "it ends early": (LIKE, Course((2.0,), ended="job"), Verdict.HARMS, "the job comes to 1 step instead of 16"),
    "no mirror": (
        LIKE,
        Course((), ended="not applied", why="train.py lies"),
        Verdict.UNKNOWN,
        "not tried: train.py lies",
    ),
    "less memory": (LIKE, replace(LIKE, peak=80 << 20), Verdict.HELPS, "peak memory 100 to 80 MiB"),
    "a waste less": (replace(LIKE, faults=X, wastes=X), LIKE, Verdict.HELPS, "says x no more"),
    "a fault less, and nothing is better": (FAULTY, LIKE, Verdict.SAME, "says x no more, and the loss is no better"),
    "a fault less, and better": (FAULTY, ending(LIKE, 0.2), Verdict.HELPS, "says x no more; the loss ends at 0.2"),
    "a fault less, and another loss": (
        FAULTY,
        replace(LIKE, losses=(0.5,) * STEPS),
        Verdict.HELPS,
        "says x no more",
    ),
    "a fault less, in a game": (FAULTY, replace(LIKE, optimizers=2), Verdict.HELPS, "says x no more"),
    "a fault less, and no number as before": (
        replace(FAULTY, losses=NAN),
        replace(LIKE, losses=NAN),
        Verdict.SAME,
        "says x no more, and the loss is no better",
    ),
    "a number at last, on other batches": (
        replace(LIKE, losses=NAN),
        replace(LIKE, losses=(1.9, *LIKE.losses[1:])),
        Verdict.HELPS,
        "the loss ends at 1.16 instead of no finite number (5 tries)",
    ),
    "another fault": (
        replace(LIKE, faults=frozenset(("x",))),
        replace(LIKE, faults=frozenset(("y",))),
        Verdict.HARMS,
        "says y now",
    ),
    "right and slower": (LIKE, faster(ending(LIKE, 0.2), 0.5), Verdict.HELPS, "it costs: step 10 to 20 ms"),
    "another loss, faster": (LIKE, faster(replace(LIKE, losses=(0.5,) * STEPS), 2), Verdict.UNKNOWN, "not compared"),
    "faster and worse": (LIKE, faster(ending(LIKE, 2.0), 2), Verdict.HARMS, "the loss ends at 2"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_remedy_is_judged_by_all_that_it_changes(case: str) -> None:
    without, given, verdict, fact = CASES[case]
    courses = Courses()
    for number in range(TRIES + 1):
        courses.found[CONTROL, number] = without
        courses.found[EDIT.arm, number] = given
    said = judge(courses, EDIT.arm)
    assert said.verdict is verdict
    assert fact in "; ".join((*said.worse, *said.facts))


def test_a_remedy_that_was_not_tried_is_not_judged() -> None:
    assert judge(Courses(), EDIT.arm).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("times", "verdict", "fact"),
    [
        ((2, 2, 0.6, 1.5, 0.9), Verdict.UNKNOWN, "the time of a step varies too much: -11% with it"),
        ((2, 1.02, 0.95, 1.04, 0.99), Verdict.SAME, ""),
    ],
)
def test_a_difference_of_times_that_pairs_do_not_agree_on_is_none(
    times: tuple[float, ...], verdict: Verdict, fact: str
) -> None:
    courses = Courses()
    for number, each in enumerate(times):
        courses.found[CONTROL, number] = LIKE
        courses.found[EDIT.arm, number] = faster(LIKE, each)
    said = judge(courses, EDIT.arm)
    assert said.verdict is verdict
    assert fact in "; ".join(said.facts)


def test_times_that_leave_it_open_are_taken_in_as_many_pairs_again() -> None:
    other = replace(EDIT, line=9)
    answers, found = Answers(), []
    plan = remedies(answers, [EDIT, other])
    order = next(plan)
    while True:
        found.append(order.arm)
        varies = order.arm == EDIT.arm and order.number % 2
        try:
            order = plan.send(faster(LIKE, 3.0) if varies else LIKE)
        except StopIteration:
            break
    assert found.count(CONTROL) == found.count(EDIT.arm) > found.count(other.arm) == 1 + TRIES


@pytest.mark.parametrize(
    ("failing", "expected"),
    [((), [5, 5, 5]), ((CONTROL,), [1, 1, 1]), ((EDIT.arm,), [5, 1, 5])],
    ids=["none", "the job", "an edit"],
)
def test_what_fails_is_not_run_again(failing: tuple[Arm, ...], expected: list[int]) -> None:
    other = replace(EDIT, line=9)
    answers, found = Answers(), []
    plan = remedies(answers, [EDIT, other])
    order = next(plan)
    while True:
        found.append(order.arm)
        try:
            order = plan.send(FAILED if order.arm in failing else LIKE)
        except StopIteration:
            break
    assert [found.count(arm) for arm in (CONTROL, EDIT.arm, other.arm)] == expected
