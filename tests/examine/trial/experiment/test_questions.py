"""Which arms are tried after which answers: the plan, asked by hand."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from torchtriage.examine.trial.experiment.arms import CONTROL, Arm, Course
from torchtriage.examine.trial.experiment.questions import (
    FASTER,
    FASTER_LOADING,
    FASTER_STEPS,
    FROM_MEMORY,
    NO_CLIPPING,
    NO_DECAY,
    ONE_BATCH,
    ONE_BATCH_AT,
    OTHER_TARGETS,
    SLOWER,
    SLOWEST,
    SMALLER,
    TRIES,
    Answers,
    paces,
    peaks,
    plan,
)

BOTH = frozenset(("sanity", "stability"))
HEALTHY = {CONTROL: 1.0, SLOWER: 1.6, **dict.fromkeys(FASTER, 3.0), ONE_BATCH: 0.1, OTHER_TARGETS: 1.9}


def asked(ends: Mapping[Arm, float], recipes: frozenset[str] = BOTH, optimizers: int = 1) -> list[tuple[Arm, int]]:
    """The arms that a plan asks for, where each course goes from 2 to its end in ENDS; others are not applied."""
    answers, found = Answers(), []
    steps = plan(answers, recipes)
    order = next(steps)
    while True:
        course = None
        if not order.look:
            found.append((order.arm, order.number))
            end = ends.get(order.arm)
            course = (
                Course((), ended="not applied") if end is None else Course((2.0, *[end] * 7), optimizers=optimizers)
            )
        try:
            order = steps.send(course)
        except StopIteration:
            return found


def tries(found: list[tuple[Arm, int]], arm: Arm) -> int:
    return sum(each == arm for each, _ in found)


def test_a_healthy_training_is_tried_once_at_each_rate() -> None:
    found = asked(HEALTHY)
    assert [arm for arm, _ in found] == [CONTROL, SLOWER, *FASTER, NO_DECAY, NO_CLIPPING, ONE_BATCH, OTHER_TARGETS]


@pytest.mark.parametrize("arm", [NO_DECAY, NO_CLIPPING], ids=str)
def test_what_holds_the_training_back_is_left_out_again(arm: Arm) -> None:
    found = asked({**HEALTHY, NO_DECAY: 1.0, NO_CLIPPING: 1.0, arm: 0.5})
    assert {each for each, number in found if number} == {CONTROL, arm}
    assert tries(found, arm) == 1 + TRIES


@pytest.mark.parametrize(
    ("change", "arm"),
    [
        ({CONTROL: 5.0, SLOWER: 1.0, SLOWEST: 1.8}, SLOWER),
        ({CONTROL: 5.0, SLOWER: 4.0, SLOWEST: 1.0}, SLOWEST),
        ({CONTROL: 1.99, FASTER[0]: 1.9, FASTER[1]: 0.5}, FASTER[1]),
    ],
)
def test_the_rate_that_gets_furthest_is_tried_again(change: dict[Arm, float], arm: Arm) -> None:
    found = asked({**HEALTHY, **change})
    assert tries(found, arm) == 1 + TRIES
    assert tries(found, CONTROL) == 1 + TRIES


def test_one_batch_that_is_not_learned_is_tried_at_other_rates() -> None:
    found = asked({**HEALTHY, ONE_BATCH: 1.9, ONE_BATCH_AT[0]: 1.9, ONE_BATCH_AT[1]: 0.2})
    assert [tries(found, arm) for arm in ONE_BATCH_AT] == [1, 1, 0]


def test_targets_that_do_not_matter_are_tried_again() -> None:
    assert tries(asked({**HEALTHY, OTHER_TARGETS: 1.0}), OTHER_TARGETS) == 1 + TRIES


def test_a_change_that_has_no_place_is_tried_once() -> None:
    ends = {arm: end for arm, end in HEALTHY.items() if arm != OTHER_TARGETS}
    assert tries(asked(ends), OTHER_TARGETS) == 1


def test_rates_of_a_game_are_left_alone() -> None:
    assert all(arm not in (SLOWER, *FASTER) for arm, _ in asked(HEALTHY, optimizers=2))


@pytest.mark.parametrize(("recipe", "arm"), [("sanity", SLOWER), ("stability", OTHER_TARGETS)])
def test_a_recipe_leaves_out_what_belongs_to_the_other(recipe: str, arm: Arm) -> None:
    assert tries(asked(HEALTHY, frozenset((recipe,))), arm) == 0


def test_what_is_wanted_by_name_is_tried_as_often_as_it_takes() -> None:
    answers, arm = Answers(), Arm((("dropout", 0.0),))
    steps = plan(answers, frozenset(), (arm,))
    order, found = next(steps), []
    for _ in range(1 + 2 * TRIES):
        found.append((order.arm, order.number))
        order = steps.send(Course((2.0,) * 8))
    assert found[:4] == [(CONTROL, 0), (arm, 0), (CONTROL, 1), (arm, 1)]


def test_a_job_without_a_step_is_tried_no_further() -> None:
    assert asked({}) == [(CONTROL, 0)]


def timed(seconds: Mapping[Arm, float], wanted: tuple[Arm, ...] = ()) -> list[tuple[Arm, int]]:
    """The arms of which a plan wants times, where each takes SECONDS for a step; others are not applied."""
    answers, found = Answers(), []
    steps = paces(answers, wanted)
    order = next(steps)
    while True:
        found.append((order.arm, order.number))
        took = seconds.get(order.arm)
        course = Course((), ended="not applied") if took is None else Course((1.0,) * 8, seconds=(took,) * 8)
        try:
            order = steps.send(course)
        except StopIteration:
            return found


FUSED, BFLOAT = FASTER_STEPS[2], FASTER_STEPS[5]


@pytest.mark.parametrize(
    ("seconds", "again"),
    [
        ({CONTROL: 1.0, FROM_MEMORY: 0.99, FUSED: 1.0}, set()),
        ({CONTROL: 1.0, FROM_MEMORY: 0.5, FASTER_LOADING[0]: 0.6}, {CONTROL, FROM_MEMORY, FASTER_LOADING[0]}),
        ({CONTROL: 1.0, FROM_MEMORY: 0.98, FUSED: 0.9, BFLOAT: 1.4}, {CONTROL, FUSED}),
    ],
    ids=["nothing", "loading", "an optimizer"],
)
def test_what_seems_to_make_a_step_shorter_is_timed_again(seconds: dict[Arm, float], again: set[Arm]) -> None:
    found = timed(seconds)
    assert {arm for arm, number in found if number} == again
    assert all(tries(found, arm) == 1 + TRIES for arm in again)


def test_workers_are_tried_only_where_loading_takes_time() -> None:
    assert not tries(timed({CONTROL: 1.0, FROM_MEMORY: 0.95}), FASTER_LOADING[0])
    assert tries(timed({CONTROL: 1.0, FROM_MEMORY: 0.5}), FASTER_LOADING[0]) == 1


def test_an_arm_that_is_wanted_is_timed_in_pairs_whatever_comes_of_it() -> None:
    assert timed({CONTROL: 1.0, FUSED: 1.1}, (FUSED,)) == [
        (CONTROL, 0),
        (FUSED, 0),
        *((arm, number) for number in range(1, TRIES + 1) for arm in (CONTROL, FUSED)),
    ]


def measured(peaks_by_arm: Mapping[Arm, int | str | None], wanted: tuple[Arm, ...] = ()) -> tuple[list[Arm], Answers]:
    """The arms whose peak of memory a plan wants, where each holds so many bytes, or ends with an error."""
    answers, found = Answers(), []
    steps = peaks(answers, wanted)
    order = next(steps)
    while True:
        assert order.number == 0
        found.append(order.arm)
        peak = peaks_by_arm.get(order.arm, "refused")
        if peak == "refused":
            course = Course((), ended="not applied", why="there is none")
        elif isinstance(peak, str):
            course = Course((1.0,), ended="error", why=peak)
        else:
            course = Course((1.0,) * 8, peak=peak)
        try:
            order = steps.send(course)
        except StopIteration:
            return found, answers


FULL = "OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 60.00 MiB"


@pytest.mark.parametrize(
    ("peak", "arms"),
    [
        (100, [CONTROL, *SMALLER]),
        (FULL, [CONTROL, *SMALLER]),
        ("ValueError: no data", [CONTROL]),
        (None, [CONTROL]),
        ("refused", [CONTROL]),
    ],
    ids=["a device", "a full device", "an error", "no device", "no training"],
)
def test_what_lowers_the_peak_is_tried_once_where_there_is_one(peak: int | str | None, arms: list[Arm]) -> None:
    found, _ = measured({**dict.fromkeys(SMALLER, 50), CONTROL: peak})
    assert found == arms


def test_of_a_wanted_change_alone_the_peak_is_read() -> None:
    arm = Arm((("foreach", 0.0),))
    found, answers = measured({CONTROL: 100}, (arm,))
    assert found == [CONTROL, arm]
    assert answers.refused == {arm: "there is none"}
