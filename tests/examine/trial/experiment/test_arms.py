"""How far arms get, and how sure that is, from courses made by hand."""

from __future__ import annotations

import random
from math import inf

import pytest

from torchtriage.examine.trial.experiment.arms import CONTROL, Arm, Course, Courses
from torchtriage.examine.trial.experiment.job.events import Branched

SLOWER = Arm((("learning-rate", 0.1),))


def falling(end: float, *, steps: int = 16, start: float = 2.0, noise: float = 0.0, seed: int = 0) -> Course:
    """A loss that falls in the first half, and stays."""
    draw = random.Random(seed)
    half = steps // 2
    levels = [start + (end - start) * min(1.0, at / half) for at in range(steps)]
    return Course(tuple(level + draw.gauss(0, noise) for level in levels))


def courses(control: list[Course], arm: list[Course]) -> Courses:
    found = {(CONTROL, number): each for number, each in enumerate(control)}
    return Courses(found | {(SLOWER, number): each for number, each in enumerate(arm)})


def test_a_course_is_the_mean_of_the_passes_of_each_step_and_ends_with_its_last_fourth() -> None:
    branch = Branched(losses=[[4.0, 2.0], [2.0], [], [1.0], [0.5]], before=[[5.0]], rates=[0.1] * 5, optimizers=1)
    course = Course.of(branch)
    assert course.losses == (3.0, 2.0, 1.0, 0.5)
    assert course.before == (5.0,)
    assert course.end == 0.5


@pytest.mark.parametrize(
    ("control", "arm", "value"),
    [
        (1.0, 0.0, 0.5),  # the arm gains 2, the control half of that
        (2.0, 0.0, 1.0),
        (0.0, 1.0, -0.5),
        (inf, 1.0, 2.0),  # all is lost, and more is no more certain
        (1.0, 1.0, 0.0),
    ],
)
def test_one_arm_gets_further_by_a_share_of_what_the_better_one_gains(control: float, arm: float, value: float) -> None:
    found = courses(
        [
            falling(control if control < inf else 3.0),
        ],
        [falling(arm)],
    )
    if control == inf:
        found.found[CONTROL, 0] = Course((2.0,) * 12 + (float("nan"),) * 4)
    contrast = found.contrast(SLOWER, CONTROL)
    assert contrast is not None
    assert contrast.value == pytest.approx(value, abs=1e-9)
    assert contrast.is_least is (value == 2.0)


def test_one_pair_tells_nothing_for_sure() -> None:
    contrast = courses([falling(1.0)], [falling(0.0)]).contrast(SLOWER, CONTROL)
    assert contrast is not None
    assert contrast.tries == 1
    assert contrast.spread == (-1.0, 1.0)


def test_only_tries_that_begin_alike_are_compared() -> None:
    found = courses([falling(1.0), falling(1.0)], [falling(0.0)])
    contrast = found.contrast(SLOWER, CONTROL)
    assert contrast is not None
    assert contrast.tries == 1
    assert Courses({(CONTROL, 0): falling(1.0), (SLOWER, 1): falling(0.0)}).contrast(SLOWER, CONTROL) is None


def test_the_try_that_has_chosen_an_arm_does_not_speak_for_it() -> None:
    found = courses([falling(1.0)] * 3, [falling(0.0), falling(1.0), falling(1.0)])
    contrast = found.contrast(SLOWER, CONTROL)
    assert contrast is not None
    assert (contrast.value, contrast.tries) == (0.0, 2)


def test_a_course_that_broke_off_at_once_is_not_compared() -> None:
    assert courses([falling(1.0)], [Course((2.0, 1.0))]).contrast(SLOWER, CONTROL) is None


def test_an_arm_that_changes_nothing_is_told_apart_in_one_of_twenty_experiments_at_most() -> None:
    """The interval is one of 95 %: of 2,000 null experiments of four pairs each, some 100 leave out 0."""
    wrong = 0
    for number in range(2000):
        seeds = [number * 100 + each for each in range(10)]
        control = [falling(1.0, noise=0.3, seed=seed) for seed in seeds[:5]]
        arm = [falling(1.0, noise=0.3, seed=seed) for seed in seeds[5:]]
        contrast = courses(control, arm).contrast(SLOWER, CONTROL)
        assert contrast is not None
        wrong += not contrast.spread[0] <= 0 <= contrast.spread[1]
    assert wrong <= 2000 * 0.06


def paced(*seconds: float) -> Course:
    return Course((1.0,) * len(seconds), seconds=seconds)


def test_the_time_of_a_step_is_that_after_the_first_fourth() -> None:
    assert paced(9.0, 9.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0).pace == 1.5


def test_what_an_arm_saves_of_a_step_is_told_by_the_pairs_behind_the_first() -> None:
    own = [paced(*[each] * 8) for each in (0.1, 0.50, 0.52, 0.48, 0.50)]
    found = courses([paced(*[1.0] * 8)] * 5, own).saved(SLOWER, CONTROL)
    assert found is not None
    assert found.tries == 4
    assert found.value == pytest.approx(0.5, abs=0.01)
    assert 0.4 < found.spread[0] < found.value < found.spread[1] < 0.6
    assert found.ends == (pytest.approx(0.5), 1.0)


def test_times_that_change_nothing_leave_zero_in_their_interval() -> None:
    draw = random.Random(0)
    rejected = 0
    for _ in range(1000):
        pair = [[paced(*[1 + draw.gauss(0, 0.1)] * 8) for _ in range(5)] for _ in range(2)]
        found = courses(*pair).saved(SLOWER, CONTROL)
        assert found is not None
        rejected += not found.spread[0] <= 0 <= found.spread[1]
    assert rejected / 1000 <= 0.065  # 5 %, by more than two standard errors
