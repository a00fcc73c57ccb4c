"""What is said of trainings that train nothing, or the wrong way, from events made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from records import Events, evidence, found, steps

from torchtriage.specialists.custom_autograd_functions.readings import flat
from torchtriage.specialists.debugging_techniques.readings import diverged, empty, rates, schedules

EMPTY = {
    "kind": "empty-steps", "step": 30, "optimizer": "SGD", "parameters": 4, "built": ["t.py", 3], "path": "t.py",
    "line": 9, "root": 8, "steps": 30, "passes": 30, "leaves": 30,
}  # fmt: skip
FAILED = {
    "kind": "pass-failed", "step": 30, "phase": "backward", "error": "RuntimeError", "message": "no scalar\nmore",
    "path": "t.py", "line": 9, "times": 30, "of": 30,
}  # fmt: skip
FLAT = {
    "kind": "flat", "step": 4, "ops": ["round"], "parameters": 2, "of": 8, "names": ["head.weight"], "path": "t.py",
    "line": 9, "root": 8, "steps": 5,
}  # fmt: skip
ASCENT = {
    "kind": "ascent", "step": 60, "loss": "NllLoss", "path": "t.py", "line": 9, "passes": 60, "of": 60,
    "first": [1.4, 1.5, 1.4], "last": [9.0, 9.5, 10.0], "turns": 0, "steps": 60,
}  # fmt: skip
PLAN = {
    "kind": "planned", "step": 100, "schedule": "PolynomialLR", "path": "t.py", "line": 5, "end": 20, "calls": 100,
    "turns": 100, "rate": 0.0,
}  # fmt: skip


def rate(at: int, lr: float | None, **change: Any) -> dict[str, Any]:
    row = {"kind": "rate", "step": at, "at": at, "turns": at + 1, "optimizer": "SGD", "number": 0, "path": "t.py"}
    return {**row, "line": 4, "lr": lr, "highest": 0.1, **change}


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"loss-detached"}, id="every pass"),
        pytest.param({"steps": 9}, set(), id="a phase of nine steps"),
        pytest.param({"sound": True}, set(), id="a later step found gradients"),
        pytest.param({"leaves": 29}, set(), id="one pass began at a graph"),
        pytest.param({"leaves": 0, "passes": 0}, set(), id="no backward pass: gradients of another making"),
    ],
)
def test_a_loss_has_no_graph_where_all_passes_begin_at_a_leaf_and_no_step_finds_a_gradient(
    change: dict[str, Any], slugs: set[str]
) -> None:
    assert found(empty.loss_detached, [*steps(9), {**EMPTY, **change}]) == slugs


CUT = {"kind": "cut", "step": 0, "further": [["a graph is cut off here, by `detach`", "m.py", 7]]}
GRAPHLESS = "element 0 of tensors does not require grad and does not have a grad_fn"


@pytest.mark.parametrize(
    ("events", "lines"),
    [
        pytest.param([CUT, {"kind": "error", "step": 0, "message": GRAPHLESS}], [7], id="the job failed by it"),
        pytest.param([CUT], [], id="it did not fail"),
        pytest.param([CUT, {"kind": "error", "step": 9, "message": "out of memory"}], [], id="it failed otherwise"),
    ],
)
def test_what_cut_the_graph_off_is_told_where_the_job_failed_by_that(events: Events, lines: list[int]) -> None:
    assert [each.place.line for each in evidence(empty.loss_detached, [*steps(9), *events])] == lines


def test_what_made_the_tensor_that_is_differentiated_stands_beside_it() -> None:
    items = evidence(empty.loss_detached, [EMPTY])
    assert [(item.place.path, item.place.line) for item in items] == [("t.py", 9), ("t.py", 8), ("t.py", 3)]
    assert "none of the 4 parameters of SGD had a gradient in 30 steps" in items[0].fact


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"failure-swallowed"}, id="every pass"),
        pytest.param({"times": 4, "of": 4}, set(), id="a search for the largest batch"),
        pytest.param({"times": 23, "of": 30}, set(), id="batches without a pair, that are left out"),
        pytest.param({"phase": "forward", "of": 31}, {"failure-swallowed"}, id="nearly all calls of the model"),
    ],
)
def test_an_error_is_hidden_where_most_passes_raise_it_and_the_script_goes_on(
    change: dict[str, Any], slugs: set[str]
) -> None:
    assert found(empty.failure_swallowed, [*steps(9), {**FAILED, **change}]) == slugs


def test_a_hidden_error_is_told_by_its_first_line_with_the_steps_that_changed_nothing() -> None:
    (item,) = evidence(empty.failure_swallowed, [FAILED, EMPTY])
    assert item.fact == (
        "30 of 30 backward passes raised RuntimeError: no scalar; the script caught it and went on; SGD stepped 30 "
        "times without a gradient"
    )


def test_parameters_behind_round_are_told_with_the_loss_and_the_line_that_differentiates_it() -> None:
    items = evidence(flat.no_gradient_by_design, [FLAT])
    assert [item.place.line for item in items] == [8, 9]
    assert items[0].fact == (
        "2 of 8 parameters of the loss are reached only through round, whose gradient is zero everywhere: theirs was "
        "zero in 5 steps of 5 (head.weight, …)"
    )


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([ASCENT], {"loss-diverged"}, id="it grows"),
        pytest.param([{**ASCENT, "last": [1.5, 1.6]}], set(), id="it stays"),
        pytest.param([{**ASCENT, "passes": 19}], set(), id="few passes"),
        pytest.param([{**ASCENT, "turns": 3}], set(), id="a game of two optimizers, by epochs"),
        pytest.param([{**ASCENT, "turns": 1}], {"loss-diverged"}, id="another training after it"),
        pytest.param([{**ASCENT, "before": 40}], set(), id="what was trained is unlearned"),
        pytest.param([{**ASCENT, "owned": False}], set(), id="an input is searched for"),
        pytest.param([rate(0, 0.1, maximizes=True), ASCENT], set(), id="an ascent that is asked for"),
    ],
)
def test_minus_a_loss_that_grows_is_the_wrong_sign(events: Events, slugs: set[str]) -> None:
    assert found(diverged.loss_diverged, [*steps(9), *events]) == slugs


SPENT = {"highest": 0.1, "since": 20, "scheduled": True}


@pytest.mark.parametrize(
    ("rows", "slugs"),
    [
        pytest.param([rate(99, 0.0, **SPENT)], {"schedule-exceeded"}, id="at 0 for most of it"),
        pytest.param([rate(99, 1e-40, **SPENT)], {"schedule-exceeded"}, id="a rate that was divided at each batch"),
        pytest.param([rate(99, -0.4, **SPENT)], {"schedule-exceeded"}, id="below 0"),
        pytest.param([rate(99, -0.4, since=20)], {"schedule-exceeded"}, id="below 0 by hand"),
        pytest.param([rate(99, 0.0, since=20)], set(), id="set to 0 by hand, to take statistics anew"),
        pytest.param([rate(99, 0.0, **{**SPENT, "since": 92})], set(), id="the last seven of a hundred"),
        pytest.param([rate(999, 0.0, **{**SPENT, "since": 960})], set(), id="the last forty of a thousand"),
        pytest.param([rate(99, 0.1, scheduled=True)], set(), id="a usual end"),
        pytest.param([rate(99, 0.0, **SPENT, returns=3)], set(), id="optimizers that are held still by turns"),
        pytest.param([rate(99, 0.0, **SPENT), rate(99, 0.1, number=1)], set(), id="another optimizer goes on"),
        pytest.param([rate(99, -0.1, **SPENT), rate(99, 0.1, number=1)], {"schedule-exceeded"}, id="one climbs"),
        pytest.param([rate(99, -0.1, **SPENT, maximizes=True)], set(), id="it is to climb"),
        pytest.param([rate(99, None, **SPENT)], set(), id="on a device, where nobody has read it"),
    ],
)
def test_a_schedule_is_exceeded_where_the_rate_has_come_to_nothing_for_a_tenth_of_the_steps(
    rows: Events, slugs: set[str]
) -> None:
    assert found(schedules.schedule_exceeded, rows) == slugs


def test_the_schedule_whose_end_is_known_is_where_it_is_told() -> None:
    first, second = evidence(schedules.schedule_exceeded, [rate(99, 0.0, **SPENT), PLAN])
    assert (first.place.line, first.place.step, second.place.line) == (5, 20, 4)
    assert first.fact == (
        "the learning rate of SGD, 0.1 at most, was 0 from step 20 on: the last 79 steps changed next to nothing; "
        "PolynomialLR, made here for 20 calls, got 100"
    )


def test_the_line_that_steps_a_schedule_is_told_whether_or_not_its_end_is_known() -> None:
    stepped = {"further": [("PolynomialLR is stepped here", "t.py", 30)]}
    known = evidence(schedules.schedule_exceeded, [rate(99, 0.0, **SPENT), {**PLAN, **stepped}])
    assert [each.place.line for each in known] == [5, 30, 4]
    unknown = evidence(schedules.schedule_exceeded, [rate(99, 0.0, **SPENT), {**PLAN, "end": 0, **stepped}])
    assert [each.place.line for each in unknown] == [30, 4]
    assert unknown[0].fact.startswith("the learning rate of SGD, 0.1 at most, was 0 from step 20 on")


def test_a_loss_that_a_negative_rate_drives_up_is_blamed_on_the_schedule_alone() -> None:
    losses = [{**each, "loss": 2.0 * 1.05 ** each["step"]} for each in steps(140)]
    told = {"kind": "classes", "at": 5, "alone": True, "classes": 4, "value": 2.0, "prior": 1.4, "even": 1.4}
    noted = [{**told, "step": number, "at": number, "value": 2.0 * 1.05**number} for number in (5, 20, 80, 120)]
    size = {"kind": "update-size", "step": 3, "at": 3, "ratio": 0.3, "optimizer": "SGD"}
    beyond = [rate(0, 0.1), rate(139, -0.4, since=24, scheduled=True)]
    for detector in (diverged.loss_diverged, diverged.learning_rate_too_high):
        assert found(detector, [*losses, *noted, size, *beyond]) == set()
    assert found(diverged.loss_diverged, [*losses, *noted, rate(0, 0.1)]) == {"loss-diverged"}


def way(pace: float, straight: float, steps_: int = 150) -> Events:
    """Updates that come to PACE of the weights a step, which is STRAIGHT of their lengths."""
    size = {"kind": "update-size", "optimizer": 0, "ratio": pace / straight, "cosine": 0.9}
    return [{**size, "step": n, "at": n, "moved": pace * (n + 1)} for n in range(0, steps_, 4)]


def untrained(first: float = 1.4, last: float = 1.38, count: int = 150) -> Events:
    losses = [first + (last - first) * number / count for number in range(count)]
    told = {"kind": "classes", "alone": True, "classes": 4, "prior": 1.386, "even": 1.386, "path": "t.py", "line": 8}
    notes = [{**told, "step": at, "at": at, "value": losses[at]} for at in (2, 32, 128)]
    return [*[{**each, "loss": loss} for each, loss in zip(steps(count), losses, strict=True)], *notes]


def unknown(first: float, last: float, count: int = 150) -> Events:
    """A loss of which nobody knows what a guess costs, but of one of its terms."""
    losses = [{**each, "loss": first + (last - first) * each["step"] / count} for each in steps(count)]
    return [*losses, term(2, 0.69), term(140, 0.685)]


def term(at: int, value: float) -> dict[str, Any]:
    told = {"kind": "classes", "alone": False, "classes": 2, "prior": 0.5, "even": 0.69, "path": "t.py", "line": 8}
    return {**told, "step": at, "at": at, "value": value}


@pytest.mark.parametrize(
    ("losses", "updates", "rows", "slugs"),
    [
        pytest.param(untrained(), way(3e-5, 0.85), [rate(0, 1e-5)], {"learning-rate-too-low"}, id="a straight short way"),
        pytest.param(untrained(), way(1.4e-4, 0.65), [rate(0, 1e-3)], set(), id="SGD at first, in the tutorial"),
        pytest.param(untrained(), way(3e-5, 0.4), [rate(0, 1e-3)], set(), id="noise: longer steps would not help"),
        pytest.param(
            untrained(), [{**each, "loaded": True} for each in way(3e-5, 0.85)], [rate(0, 1e-5)], set(),
            id="a body that was loaded, with a new head",
        ),
        pytest.param(untrained(), way(1e-3, 0.85), [rate(0, 1e-3)], set(), id="weights that move"),
        pytest.param(untrained(last=0.9), way(3e-5, 0.85), [rate(0, 1e-5)], set(), id="a loss that falls"),
        pytest.param(untrained(0.8, 0.79), way(3e-5, 0.85), [rate(0, 1e-5)], set(), id="something had been learned"),
        pytest.param(untrained(), way(3e-5, 0.85, 60), [rate(0, 1e-5)], set(), id="sixty steps"),
        pytest.param(
            untrained(), way(3e-5, 0.85), [rate(0, 1e-6), rate(149, 0.1)], set(), id="a rate that is warming up"
        ),
        pytest.param(
            untrained(), way(3e-5, 0.85), [rate(0, 1e-6), rate(20, 1e-5, highest=1e-5), rate(149, 0.0, highest=1e-5)],
            {"learning-rate-too-low"}, id="after a warm-up",
        ),
        pytest.param(
            untrained(), way(3e-5, 0.85), [rate(0, 1e-5), rate(1, 1e-5, number=1)], set(), id="several optimizers"
        ),
        pytest.param(unknown(99.5, 99.1), way(3e-5, 0.85), [rate(0, 1e-5)], {"learning-rate-too-low"}, id="of terms"),
        pytest.param(unknown(99.5, 99.1)[:-2], way(3e-5, 0.85), [rate(0, 1e-5)], set(), id="of no term that is known"),
        pytest.param(
            [*unknown(99.5, 99.1)[:-1], term(140, 0.5)], way(3e-5, 0.85), [rate(0, 1e-5)], set(), id="one term falls"
        ),
        pytest.param(unknown(99.5, 92.0), way(3e-5, 0.85), [rate(0, 1e-5)], set(), id="of terms, which fall"),
        pytest.param(unknown(99.5, 99.1), way(3e-5, 0.75), [rate(0, 1e-5)], set(), id="of terms, on a way with turns"),
        pytest.param(unknown(0.1, -0.1), way(3e-5, 0.85), [rate(0, 1e-5)], set(), id="of terms that may be below 0"),
        pytest.param(unknown(99.5, 99.1), way(1e-3, 0.85), [rate(0, 1e-3)], set(), id="of terms, and weights move"),
    ],
)  # fmt: skip
def test_a_rate_is_too_low_where_all_updates_point_one_way_and_come_to_nothing(
    losses: Events, updates: Events, rows: Events, slugs: set[str]
) -> None:
    assert found(rates.learning_rate_too_low, [*losses, *updates, *rows]) == slugs


@pytest.mark.parametrize(
    ("first", "second", "slugs"),
    [
        pytest.param(0.999, 0.9, {"betas-swapped"}, id="the usual ones"),
        pytest.param(0.98, 0.9, {"betas-swapped"}, id="those of transformers"),
        pytest.param(0.95, 0.9, set(), id="close ones"),
        pytest.param(0.9, 0.5, set(), id="a short average of squares"),
        pytest.param(0.9, 0.9, set(), id="equal ones"),
        pytest.param(0.9, 0.0, set(), id="by the sign alone"),
        pytest.param(0.9, 0.999, set(), id="in order"),
        pytest.param(0.0, 0.99, set(), id="no mean"),
    ],
)
def test_betas_are_swapped_where_gradients_are_averaged_over_many_more_steps(
    first: float, second: float, slugs: set[str]
) -> None:
    event = {"kind": "betas", "step": 0, "optimizer": "AdamW", "first": first, "second": second, "path": "t.py"}
    assert found(rates.betas_swapped, [*steps(9), {**event, "line": 3}]) == slugs


def update(ratio: float, at: int = 0) -> dict[str, Any]:
    return {"kind": "update-size", "optimizer": 0, "step": at, "at": at, "ratio": ratio}


@pytest.mark.parametrize(
    ("losses", "events", "slugs"),
    [
        pytest.param(unknown(3.5, 240.0), [update(70.0)], {"learning-rate-too-high"}, id="seventy times the weights"),
        pytest.param(unknown(3.5, 240.0), [update(0.05)], set(), id="a term that is annealed in"),
        pytest.param(unknown(3.5, 240.0), [update(0.3)], set(), id="a third of the weights"),
        pytest.param(unknown(3.5, 240.0), [update(70.0, at=40)], set(), id="later"),
        pytest.param(unknown(3.5, 4.0), [update(70.0)], set(), id="it is hardly worse"),
        pytest.param(unknown(3.5, 0.4), [update(0.98)], set(), id="it learns nevertheless, as Adam at 0.1 may"),
        pytest.param(unknown(-1.0, 240.0), [update(70.0)], set(), id="a loss that may be below 0"),
        pytest.param(unknown(3.5, 240.0, 60), [update(70.0)], set(), id="sixty steps"),
        pytest.param(
            unknown(3.5, 240.0), [update(70.0), rate(1, 0.1, number=1)], set(), id="two optimizers, of a game"
        ),
        pytest.param(unknown(3.5, 240.0), [update(70.0), rate(99, 0.1, maximizes=True)], set(), id="an ascent"),
    ],
)
def test_a_rate_is_too_high_where_a_loss_of_terms_ends_far_above_its_start(
    losses: Events, events: Events, slugs: set[str]
) -> None:
    assert found(diverged.learning_rate_too_high, [*losses, rate(0, 0.1), *events]) == slugs
