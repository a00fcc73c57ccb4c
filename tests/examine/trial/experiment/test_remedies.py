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
    "a fault less": (replace(LIKE, faults=frozenset(("x",))), LIKE, Verdict.HELPS, "says x no more"),
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


def test_a_difference_of_times_that_pairs_do_not_agree_on_is_none() -> None:
    courses = Courses()
    for number, times in enumerate((2, 2, 0.6, 1.5, 0.9)):
        courses.found[CONTROL, number] = LIKE
        courses.found[EDIT.arm, number] = faster(LIKE, times)
    assert judge(courses, EDIT.arm).verdict is Verdict.SAME


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
