"""What the training itself did, as one sentence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.report.training import advice, sentence

LOSS = {"first": 4.62, "last": 2.41, "lowest": 2.35, "course": "falls", "constant": 4.17, "floor": 0.0, "fresh": True}
LOSS["constant_of"] = "entropy of the targets"
RATE = {"first": 0.1, "last": 0.1, "highest": 0.1, "optimizer": "SGD", "path": "train.py", "line": 7}
RISES = {"first": 4.6, "last": 1310.2, "course": "rises", "constant": None, "constant_of": None}
STALLS = {"first": 2.33, "last": 2.301, "course": "level", "constant": 2.3026}
UNKNOWN = {"constant": None, "constant_of": None, "floor": None, "fresh": None}


def measured(loss: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"training": {"steps": 300, "passes": 1, "loss": {**LOSS, **loss}, "learning_rate": RATE, **more}}


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        pytest.param({}, "Training loss fell from 4.62 to 2.41 over 300 steps (a constant guess: 4.17).", id="falls"),
        pytest.param(UNKNOWN, "Training loss fell from 4.62 to 2.41 over 300 steps.", id="nothing to hold against"),
        pytest.param(
            RISES, "Training loss rose from 4.60 to 1,310 over 300 steps; learning rate 0.1 (SGD).", id="rises"
        ),
        pytest.param(
            {"first": -0.0, "last": -0.0, "course": "level", "constant": None},
            "Training loss stayed at 0 over 300 steps; learning rate 0.1 (SGD).",
            id="one class alone",
        ),
        pytest.param(
            STALLS,
            "Training loss stayed at 2.30 over 300 steps, the value of a constant guess (2.30); "
            "learning rate 0.1 (SGD).",
            id="stalls",
        ),
        pytest.param(
            {"last": 4.15},
            "Training loss fell from 4.62 to 4.15 over 300 steps, the value of a constant guess (4.17); "
            "learning rate 0.1 (SGD).",
            id="falls to a guess",
        ),
        pytest.param(
            {"last": 3.6, "constant": 2.4},
            "Training loss fell from 4.62 to 3.60 over 300 steps, more than a constant guess costs (2.40); "
            "learning rate 0.1 (SGD).",
            id="stays above a guess",
        ),
        pytest.param(
            {"course": "falls-then-rises", "last": 3.9},
            "Training loss fell from 4.62 to 2.35 and rose again to 3.90 over 300 steps (a constant guess: 4.17); "
            "learning rate 0.1 (SGD).",
            id="rises again",
        ),
        pytest.param(
            {"last": 0.007, "constant": 2.4},
            "Training loss is 0.007 where a constant guess gets 2.40: too good for 300 steps; "
            "check whether the targets stand in the inputs.",
            id="too good",
        ),
        pytest.param(
            {"last": 0.007, "fresh": False},
            "Training loss fell from 4.62 to 0.007 over 300 steps (a constant guess: 4.17).",
            id="learned by heart",
        ),
        pytest.param(
            {"last": -3.2},
            "Training loss is -3.20, below the least possible value (0): check its inputs.",
            id="impossible",
        ),
        pytest.param(
            {"course": "non-finite", "last": None},
            "Training loss is not finite at the end; it began at 4.62; learning rate 0.1 (SGD).",
            id="not finite",
        ),
    ],
)
def test_the_sentence_says_where_the_loss_went(loss: dict[str, Any], said: str) -> None:
    assert sentence(measured(loss)) == said


def test_several_optimizers_are_told_apart() -> None:
    each = [{"optimizer": "Adam", "first": 1.4, "last": 0.6}, {"optimizer": "SGD", "first": None, "last": None}]
    assert sentence(measured(RISES, optimizers=each)) == (
        "Training losses of 2 optimizers over 300 steps: Adam from 1.40 to 0.600, SGD."
    )


def test_a_schedule_shows_its_highest_rate() -> None:
    told = measured(RISES, learning_rate={**RATE, "last": 1e-4, "highest": 3e-3})
    assert sentence(told).endswith("learning rate 0.0001, at most 0.003 (SGD).")


def test_a_run_without_a_loss_says_nothing() -> None:
    assert sentence({}) == sentence({"training": {"loss": None}}) == ""


@pytest.mark.parametrize(
    ("loss", "more", "said"),
    [
        (RISES, {}, "a tenth of the learning rate"),
        (RISES, {"steps": 10}, ""),
        ({**RISES, "course": "falls", "last": 2.3, "constant": 2.3}, {}, "one batch alone"),
        ({**RISES, "course": "falls", "last": 0.4, "constant": 2.3}, {}, ""),
        ({**RISES, "course": "non-finite", "last": "nan"}, {"steps": 3}, "--symptom nan-loss"),
        pytest.param({**UNKNOWN, "course": "level"}, {}, "raise the learning rate tenfold", id="level for long"),
        pytest.param({**UNKNOWN, "course": "level"}, {"steps": 99}, "", id="level at first"),
        pytest.param(
            {"course": "level", "last": 0.4}, {}, "raise the learning rate tenfold", id="level, below a guess"
        ),
    ],
)
def test_a_course_that_no_healthy_training_has_says_what_to_do_next(loss: Any, more: Any, said: str) -> None:
    assert (said in advice(measured(loss, **more))) if said else advice(measured(loss, **more)) == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=2)
)


@given(st.dictionaries(st.sampled_from([*LOSS, "x"]), JSON), st.dictionaries(st.sampled_from(["steps", *RATE]), JSON))
def test_figures_of_any_file_make_one_line(loss: dict[str, Any], more: dict[str, Any]) -> None:
    said = sentence({"training": {"loss": loss, "learning_rate": more, "optimizers": more.get("x"), **more}})
    assert "\n" not in said
