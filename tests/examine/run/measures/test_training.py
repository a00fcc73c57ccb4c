"""The course of the training loss, from records made by hand."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

from torchtriage.examine.run.measures.training import course, training
from torchtriage.examine.run.record import RankRecord

Event = dict[str, Any]


def steps(losses: list[float]) -> list[Event]:
    return [{"kind": "step", "step": n, "seconds": 0.1, "loss": loss} for n, loss in enumerate(losses)]


def guess(at: int, value: float, **more: Any) -> Event:
    told = {"classes": 10, "prior": 2.3, "even": 2.303, "floor": 0.0, "alone": True, "others": 0, "line": 9}
    return {"kind": "classes", "at": at, "value": value, **told, **more}


def rate(lr: float, number: int = 0, **more: Any) -> Event:
    told = {"optimizer": "SGD", "path": "t.py", "line": 3, "losses": {"first": [4.0], "last": [2.0, 1.0]}}
    return {"kind": "rate", "number": number, "lr": lr, "highest": lr, **told, **more}


def told(*events: Event) -> dict[str, Any]:
    return training(RankRecord(0, events))


@pytest.mark.parametrize(
    ("losses", "word"),
    [
        ([4.6 - n / 100 for n in range(200)], "falls"),
        ([4.6 + n for n in range(200)], "rises"),
        ([2.3 + 0.01 * (n % 3) for n in range(200)], "level"),
        ([4.6 - n / 50 for n in range(100)] + [2.6 + n / 50 for n in range(100)], "falls-then-rises"),
        ([4.6 - n / 50 for n in range(100)] + [nan] * 100, "non-finite"),
        ([4.6, inf], "non-finite"),
        ([nan], "non-finite"),
        ([4.6], "level"),
        ([4.6 - n / 100 for n in range(100)] + [50.0] + [3.6 - n / 100 for n in range(99)], "falls"),
    ],
)
def test_the_course_of_a_loss_has_a_word(losses: list[float], word: str) -> None:
    found = course(losses)
    assert found is not None
    assert found["course"] == word


def test_one_loss_that_leaps_is_not_the_last_one() -> None:
    found = course([1.0] * 99 + [1e6])
    assert found == {"first": 1.0, "last": 1.0, "lowest": 1.0, "course": "level"}
    assert course([]) is None


def test_a_divided_loss_is_told_as_its_function_gave_it() -> None:
    found = told(*steps([0.575] * 40), guess(2, 2.3), guess(32, 2.31))
    assert found["loss"]["last"] == pytest.approx(2.3)
    assert (found["loss"]["constant"], found["loss"]["constant_of"]) == (2.3, "entropy of the targets")


@pytest.mark.parametrize(
    "more",
    [{"alone": False}, {"others": 1}, {"value": None}, {"value": -1.0}, {"summed": 16}],
    ids=["a term", "two kinds", "no value", "another sign", "a sum"],
)
def test_no_constant_guess_is_told_for_another_loss(more: Event) -> None:
    found = told(*steps([2.3] * 40), {**guess(2, 2.3), **more})
    assert found["loss"]["constant"] is None


def test_a_sum_that_the_script_divides_is_a_mean() -> None:
    found = told(*steps([2.3] * 40), {**guess(2, 2.3 * 16), "summed": 16})
    assert (found["loss"]["last"], found["loss"]["constant"]) == (2.3, 2.3)


def test_a_regression_has_the_variance_of_its_targets() -> None:
    event = {**guess(2, 2.3), "kind": "targets", "classes": 0}
    found = told(*steps([2.3] * 40), event, {**event, "at": 32, "prior": 2.5})
    assert (found["loss"]["constant"], found["loss"]["constant_of"]) == (2.4, "variance of the targets")


@pytest.mark.parametrize(("marks", "fresh"), [([1, 2, 3], True), ([1, 2, 1], False), ([1, 2], None)])
def test_batches_are_fresh_where_none_has_the_targets_of_another(marks: list[int], fresh: bool | None) -> None:
    found = told(*steps([2.3] * 40), *(guess(at, 2.3, mark=mark) for at, mark in enumerate(marks)))
    assert found["loss"]["fresh"] is fresh


def test_the_rate_is_that_of_the_first_optimizer_and_each_has_its_losses() -> None:
    found = told(*steps([2.3] * 40), rate(1e-3), rate(1e-2), rate(1e-4, highest=1e-2), rate(5.0, number=1))
    expected = {"first": 1e-3, "last": 1e-4, "highest": 1e-2, "optimizer": "SGD", "path": "t.py", "line": 3}
    assert found["learning_rate"] == expected
    assert [each["learning_rate"] for each in found["optimizers"]] == [1e-4, 5.0]
    assert (found["optimizers"][1]["first"], found["optimizers"][1]["last"]) == (4.0, 1.5)


def test_a_record_without_losses_has_no_course() -> None:
    found = told({"kind": "step", "step": 0, "seconds": 0.1, "loss": None})
    assert (found["loss"], found["learning_rate"], found["optimizers"], found["steps"]) == (None, None, [], 1)
