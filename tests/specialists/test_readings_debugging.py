"""What the debugging specialist's readings say of events made by hand."""

from __future__ import annotations

from math import log
from typing import Any

import pytest
from records import Events, evidence, found, outcome, steps

from torchtriage.core.evidence import Inconclusive
from torchtriage.specialists.debugging_techniques.readings import (
    indices,
    losses,
    order,
    origins,
    owners,
    schedules,
    updates,
)

ZEROED = {
    "kind": "zeroed", "step": 20, "optimizer": "SGD", "number": 0, "by_name": True, "early": 20, "sound": False,
    "path": "t.py", "line": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"zeroed-before-step"}, id="every step"),
        pytest.param({"early": 3}, {"zeroed-before-step"}, id="three steps"),
        pytest.param({"early": 2}, set(), id="two steps"),
        pytest.param({"sound": True}, set(), id="held back for a while"),
    ],
)
def test_clearing_is_early_when_no_step_that_was_watched_found_a_gradient(
    change: dict[str, Any], slugs: set[str]
) -> None:
    assert found(order.zeroed_before_step, [*steps(9), {**ZEROED, **change}]) == slugs


def test_of_two_optimizers_each_has_its_last_word() -> None:
    events = [*steps(9), {**ZEROED, "early": 3}, {**ZEROED, "number": 1}, {**ZEROED, "early": 3, "sound": True}]
    (item,) = evidence(order.zeroed_before_step, events)
    assert item.value == 20


LATE = {
    "kind": "late-clip", "step": 30, "at": 0, "call": "clip_grad_norm_", "limit": 1.0, "late": 30, "cut": 4,
    "path": "t.py", "line": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"clip-after-step"}, id="every clip"),
        pytest.param({"late": 2}, set(), id="two"),
        pytest.param({"cut": 0}, set(), id="a limit that nothing reaches"),
    ],
)
def test_a_clip_is_late_when_three_were_and_one_cut_something_off(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(order.clip_after_step, [*steps(9), {**LATE, **change}]) == slugs


SHRUNK = {
    "kind": "late-shrunk", "step": 30, "scaled": 30, "cut": 0, "factors": [0.1, 0.6], "path": "t.py", "line": 9,
    "further": [["the step that has used them stands here", "t.py", 8]],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"clip-after-step"}, id="by a norm"),
        pytest.param({"scaled": 0, "cut": 9, "factors": [1.0, 0.0]}, {"clip-after-step"}, id="cut off at a value"),
        pytest.param({"scaled": 2}, set(), id="two"),
        pytest.param({"factors": [0.0625, 0.0625]}, set(), id="always the same factor: another unit"),
    ],
)
def test_gradients_made_smaller_after_the_step_count_when_the_factors_differ(
    change: dict[str, object], slugs: set[str]
) -> None:
    assert found(order.clip_after_step, [*steps(9), {**SHRUNK, **change}]) == slugs


def test_a_schedule_that_led_is_told_with_its_first_line() -> None:
    event = {"kind": "schedule-led", "step": 9, "schedule": "StepLR", "optimizer": "SGD", "calls": 5}
    (item,) = evidence(schedules.scheduler_before_optimizer, [*steps(9), {**event, "path": "t.py", "line": 4}])
    assert (item.place.line, item.place.step) == (4, 0)
    assert found(schedules.scheduler_before_optimizer, steps(9)) == set()


@pytest.mark.parametrize(
    ("places", "lines"),
    [
        ([], [9]),
        ([["SGD steps here", "t.py", 12], ["it is called from here", "t.py", 30]], [9, 12, 30]),
        ([["SGD steps here", "t.py", 9], ["it is called from here", "t.py", 30], ["again", "t.py", 30]], [9, 30]),
        ([["SGD steps here", "", 0]], [9]),
    ],
)
def test_each_further_place_is_told_once(places: list[Any], lines: list[int]) -> None:
    events = [*steps(9), {**ZEROED, "further": places}]
    assert [item.place.line for item in evidence(order.zeroed_before_step, events)] == lines


UNOWNED = {"kind": "unowned", "step": 30, "backwards": 30, "steps": 30, "last": True}
GROUP = {
    "root": "Net", "names": ["head.weight", "head.bias"], "count": 2, "module": "head", "later": True,
    "optimizer": "Adam", "path": "t.py", "line": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"parameters-not-in-optimizer"}, id="to the end"),
        pytest.param({"groups": []}, set(), id="given to an optimizer later"),
        pytest.param({"backwards": 7}, set(), id="seven backward passes"),
        pytest.param({"last": False}, set(), id="a killed job"),
        pytest.param({"last": False, "backwards": 1024}, {"parameters-not-in-optimizer"}, id="a long killed job"),
    ],
)
def test_parameters_without_a_home_are_called_at_the_end(change: dict[str, Any], slugs: set[str]) -> None:
    events = [*steps(9), {**UNOWNED, "groups": [GROUP], "last": False}, {**UNOWNED, "groups": [GROUP], **change}]
    assert found(owners.parameters_not_in_optimizer, events) == slugs


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "head.weight, head.bias of Net got gradients and stood still over 30 backward passes: made after Adam"),
        ({"later": False, "count": 9}, "and 7 more of Net"),
        ({"later": False}, "Adam did not get them, nor did any other optimizer"),
    ],
)
def test_what_has_no_home_is_named(change: dict[str, Any], words: str) -> None:
    (item,) = evidence(owners.parameters_not_in_optimizer, [*steps(9), {**UNOWNED, "groups": [{**GROUP, **change}]}])
    assert words in item.fact
    assert (item.place.module, item.place.line) == ("head", 9)


PROBABILITIES = {
    "kind": "probabilities", "step": 30, "times": 30, "first": 0, "word": "softmax", "loss": "cross_entropy",
    "loss_line": 20, "path": "t.py", "line": 9, "module": "head",
}  # fmt: skip


@pytest.mark.parametrize(("times", "slugs"), [(2, set()), (3, {"softmax-before-cross-entropy"})])
def test_probabilities_are_called_after_three_steps(times: int, slugs: set[str]) -> None:
    event = {**PROBABILITIES, "times": times}
    assert found(losses.softmax_before_cross_entropy, [*steps(9), event]) == slugs


def test_the_first_activation_is_the_place_and_the_loss_is_named() -> None:
    (item,) = evidence(losses.softmax_before_cross_entropy, [*steps(9), {**PROBABILITIES, "times": 3}, PROBABILITIES])
    assert (item.place.line, item.place.module) == (9, "head")
    assert (
        item.fact
        == "cross_entropy in line 20 expects logits and is given the softmax of them, in 30 steps that were watched"
    )


BROADCAST = {
    "kind": "broadcast", "step": 30, "times": 30, "first": 0, "loss": "Sub", "given": [[16, 1], [16]], "path": "t.py",
    "line": 9, "module": None,
}  # fmt: skip


@pytest.mark.parametrize(("times", "slugs"), [(2, set()), (3, {"loss-broadcast"})])
def test_a_broadcast_loss_is_called_after_three_times(times: int, slugs: set[str]) -> None:
    assert found(losses.loss_broadcast, [*steps(9), {**BROADCAST, "times": times}]) == slugs


def test_a_broadcast_loss_shows_both_shapes() -> None:
    (item,) = evidence(losses.loss_broadcast, [*steps(9), BROADCAST])
    assert "a difference of shapes (16, 1) and (16,)" in item.fact


BROUGHT = {
    "kind": "non-finite", "step": 11, "at": 11, "seen": "loss", "stage": "input", "root": "Net", "path": "t.py",
    "line": 30,
    "batch": {
        "index": 11, "dataset": "Digits", "path": "t.py", "line": 20,
        "tensors": [{"name": "batch[0]", "value": "NaN", "bad": 2, "of": 100, "samples": [3], "shape": [10, 10]}],
    },
}  # fmt: skip


@pytest.mark.parametrize("stage", ["input", "loss", "backward", "unknown"])
def test_a_batch_that_is_not_finite_speaks_and_the_operation_that_met_it_does_not(stage: str) -> None:
    event = {**BROUGHT, "stage": stage, "op": "Mm", "module": "a", "chain": [], "why": "", "value": "NaN"}
    assert found(origins.input_not_finite, [*steps(20), event]) == {"input-not-finite"}
    assert found(origins.non_finite_origin, [*steps(20), event]) == set()


@pytest.mark.parametrize(("times", "slugs"), [(2, {"input-not-finite"}), (1, set())])
def test_batches_that_are_left_aside_count_when_there_are_several(times: int, slugs: set[str]) -> None:
    event = {"kind": "refused", "step": 9, "at": 3, "times": times, "batch": BROUGHT["batch"]}
    assert found(origins.input_not_finite, [*steps(20), event]) == slugs


def test_an_operation_that_made_nan_from_finite_inputs_speaks_for_itself() -> None:
    event = {**BROUGHT, "stage": "forward", "op": "log", "module": "a", "value": "NaN"}
    assert found(origins.input_not_finite, [*steps(20), event]) == set()
    assert found(origins.non_finite_origin, [*steps(20), event]) == {"non-finite-origin"}


@pytest.mark.parametrize(
    ("at", "told", "is_called"),
    [
        (0, {"finite": 63, "largest": 1.0}, False),
        (1, {"finite": 64, "largest": 2e30}, False),
        (0, {"finite": 64, "largest": 0.1}, True),
        (9, {"finite": 64, "largest": 2e30}, True),
    ],
    ids=["not finite", "far too large", "like a filled one", "later"],
)
def test_what_is_left_in_memory_that_nobody_filled_is_told_by_its_own_name(
    at: int, told: dict[str, Any], is_called: bool
) -> None:
    event = {**BROUGHT, "batch": None, "stage": "forward", "op": "mm", "module": "a", "value": "inf", "at": at}
    unfilled = {"kind": "unfilled", "step": 0, "of": 64, **told}
    assert bool(found(origins.non_finite_origin, [*steps(20), event, unfilled])) == is_called


@pytest.mark.parametrize(("persists", "skipped", "is_called"), [(False, 5, False), (False, 30, True), (True, 5, True)])
def test_what_only_float16_cannot_hold_is_left_to_a_scale_that_collapses(
    persists: bool, skipped: int, is_called: bool
) -> None:
    """Every fifth step is skipped, or every thirtieth."""
    event = {**BROUGHT, "batch": None, "stage": "forward", "op": "sum", "module": "a", "value": "inf"}
    event.update(autocast="float16", persists=persists)
    skips = [{"kind": "skip", "step": n, "scale": 2.0**-n} for n in range(100) if n % skipped == 0]
    events = [*steps(100, skipped=lambda n: int(n % skipped == 0)), event, *skips]
    assert bool(found(origins.non_finite_origin, events)) == is_called


def test_the_batch_is_named_with_its_share() -> None:
    (item,) = evidence(origins.input_not_finite, [*steps(20), BROUGHT])
    assert (item.place.line, item.place.step, item.value) == (20, 11, 0.02)
    assert "batch 11 of Digits held NaN" in item.fact
    assert "2 of 100 values of batch[0] (0.02), in samples 3" in item.fact


ERROR = {"kind": "error", "step": 7, "error": "IndexError", "message": "…", "path": "t.py", "line": 12}
OUTSIDE = {
    "kind": "index", "step": 7, "op": "embedding", "module": "words", "low": 50, "high": 52, "limit": 50, "wrong": 2,
    "of": 64,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "the embedding words has 50 rows, 0 to 49, and was given 50 to 52 (2 of 64 values are outside)"),
        ({"module": None}, "the embedding has 50 rows"),
        ({"op": "cross_entropy", "low": 50, "high": 50}, "cross_entropy has 50 classes, 0 to 49, and was given 50 (2"),
        ({"op": "indexing", "dimension": 1}, "dimension 1 has the size 50 and was indexed with 52"),
    ],
)
def test_an_index_that_ended_the_run_is_told_with_its_limit(change: dict[str, Any], words: str) -> None:
    (item,) = evidence(indices.index_out_of_range, [*steps(7), {**OUTSIDE, **change}, ERROR])
    assert words in item.fact
    assert (item.place.line, item.place.step) == (12, 7)


def test_an_assertion_of_a_device_says_how_to_see_more() -> None:
    events = [*steps(7), {"kind": "index", "step": 7, "op": "assert"}, ERROR]
    seen = outcome(indices.index_out_of_range, events)
    assert isinstance(seen, Inconclusive)
    assert "CUDA_LAUNCH_BLOCKING" in seen.unblock
    assert found(indices.index_out_of_range, [*steps(7), ERROR]) == set()


CLASSES = {
    "kind": "classes", "step": 2, "at": 2, "classes": 10, "alone": True, "others": 0, "path": "t.py", "line": 9,
    "module": None, "value": log(10), "spread": 0.1,
}  # fmt: skip


def noise(step: int) -> float:
    """Between -0.05 and 0.05, without a trend."""
    return 0.1 * (step * 0.618034 % 1.0) - 0.05


@pytest.mark.parametrize(
    ("loss", "count", "slugs"),
    [
        pytest.param(lambda n: log(10) + noise(n), 200, {"loss-at-chance"}, id="a guess to the end"),
        pytest.param(lambda n: log(10) + noise(n) + 0.5 * 0.9**n, 200, {"loss-at-chance"}, id="down to a guess"),
        pytest.param(lambda n: log(10) + noise(n), 99, set(), id="too few steps"),
        pytest.param(lambda n: log(10) + noise(n) - 0.04, 200, set(), id="two per cent below"),
        pytest.param(lambda n: log(10) + noise(n) - 0.0004 * n, 200, set(), id="falling slowly"),
        pytest.param(lambda n: log(10) + 0.06 - 0.0001 * n, 300, {"loss-at-chance"}, id="forgetting its first guesses"),
        pytest.param(lambda n: log(10) + 0.3 - 0.0009 * n, 300, set(), id="coming down from far above"),
        pytest.param(lambda n: log(10) + noise(n) - (0.2 if n > 150 else 0), 200, set(), id="a late start"),
        pytest.param(lambda n: 2 * log(10) + noise(n), 200, set(), id="diverged"),
        pytest.param(lambda n: None, 200, set(), id="no losses"),
    ],
)
def test_a_loss_is_at_chance_when_it_never_fell_below_and_does_not_fall(loss: Any, count: int, slugs: set[str]) -> None:
    events = [*steps(count, loss=loss), {**CLASSES, "value": loss(2)}]
    assert found(losses.loss_at_chance, events) == slugs


def handed_on(gain: float, prior: float, even: float = log(2)) -> Events:
    """Sightings in late steps of 200, in which answers that were handed on cost so much more."""
    told = {**CLASSES, "classes": 2, "prior": prior, "even": even, "labels": 640}
    return [{**told, "at": at, "value": 0.5, "gain": gain + noise(at) / 10} for at in range(100, 120)]


@pytest.mark.parametrize(
    ("loss", "events", "slugs"),
    [
        pytest.param(0.5, handed_on(0.0, 0.5), {"loss-at-chance"}, id="a guess by uneven frequencies"),
        pytest.param(0.5, handed_on(0.04, 0.5), set(), id="a little is known"),
        pytest.param(0.5, handed_on(0.0, 0.56), set(), id="below what that guess costs"),
        pytest.param(0.5, handed_on(0.0, 0.5)[:3], set(), id="seldom handed on"),
        pytest.param(0.5, handed_on(float("nan"), 0.5), set(), id="labels of one kind in each batch"),
        pytest.param(0.9, handed_on(0.0, 0.5), set(), id="far above an even guess"),
        pytest.param(0.9, handed_on(0.0, 0.5, even=0.8), {"loss-at-chance"}, id="where one answer counts more"),
    ],
)
def test_a_loss_is_at_chance_when_its_answers_would_do_for_other_samples(loss: float, events: Any, slugs: Any) -> None:
    told = [{**event, "value": loss} for event in events]
    assert found(losses.loss_at_chance, [*steps(200, loss=lambda n: loss + noise(n)), *told]) == slugs


def test_a_loss_at_chance_names_the_lines_that_make_the_samples() -> None:
    lines = {"kind": "samples", "step": 1, "further": [["a sample of Pairs is made here", "data.py", 4]]}
    events = [*steps(200, loss=lambda n: log(10) + noise(n)), {**CLASSES, "value": log(10)}, lines]
    places = [(item.place.path, item.place.line) for item in evidence(losses.loss_at_chance, events)]
    assert places == [("t.py", 9), ("data.py", 4)]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"alone": False}, id="one term of several"),
        pytest.param({"others": 1}, id="of two classifiers"),
        pytest.param({"value": None}, id="a loss by sample"),
        pytest.param({"value": 1.5 * log(10)}, id="a weight that is no number of micro-batches"),
        pytest.param({"classes": 1}, id="one class"),
    ],
)
def test_a_loss_is_compared_with_chance_only_where_it_is_one_cross_entropy(change: dict[str, Any]) -> None:
    events = [*steps(200, loss=lambda n: log(10) + noise(n)), {**CLASSES, "value": log(10), **change}]
    assert found(losses.loss_at_chance, events) == set()


def test_a_loss_at_chance_that_something_else_explains_is_left_to_that() -> None:
    new_layers = {"kind": "made", "step": 64, "passes": 60, "of": 64, "touched": False}
    for other in (ZEROED, new_layers):
        events = [*steps(200, loss=lambda n: log(10) + noise(n)), CLASSES, other]
        assert found(losses.loss_at_chance, events) == set()


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ([], "costs: nothing was learned"),
        ([{**CLASSES, "spread": 1e-6}], "the outputs are the same for all samples"),
        ([{"kind": "setup", "step": 1, "optimizers": [{"class": "SGD", "lr": 0.0}]}], "the learning rate was 0"),
    ],
)
def test_a_loss_at_chance_of_four_micro_batches_is_told_with_its_cause(extra: list[Any], words: str) -> None:
    events = [*steps(200, loss=lambda n: (log(10) + noise(n)) / 4), CLASSES, *extra]
    (item,) = evidence(losses.loss_at_chance, events)
    assert words in item.fact
    assert "over the last 100 of 200 steps, and ln(10) = 2.303" in item.fact
    assert (item.place.line, item.value) == (9, 200)


STALLED = {
    "kind": "stalled", "step": 40, "optimizer": "Adam", "number": 0, "rate": 0.001, "running": 24, "since": 16,
    "path": "t.py", "line": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([STALLED], {"step-missing"}, id="to the end"),
        pytest.param([STALLED, {**STALLED, "running": 0}], set(), id="it went on"),
        pytest.param([STALLED, {**STALLED, "number": 1, "running": 0}], {"step-missing"}, id="another one went on"),
    ],
)
def test_steps_that_change_nothing_are_told_unless_they_changed_something_later(
    events: Events, slugs: set[str]
) -> None:
    assert found(updates.step_missing, [*steps(60), *events]) == slugs


PLANNED = {
    "kind": "planned", "step": 100, "schedule": "OneCycleLR", "end": 400, "calls": 100, "rate": 0.1, "turns": 100,
    "path": "t.py", "line": 9,
}  # fmt: skip
EXIT = {"kind": "end", "step": 100, "why": "exit"}


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([PLANNED, EXIT], {"schedule-unfinished"}, id="a quarter"),
        pytest.param([{**PLANNED, "calls": 330}, EXIT], set(), id="nearly all"),
        pytest.param([{**PLANNED, "calls": 500}, EXIT], set(), id="beyond its end"),
        pytest.param([{**PLANNED, "calls": 0}, EXIT], set(), id="never called"),
        pytest.param([PLANNED], set(), id="killed"),
        pytest.param([PLANNED, {**EXIT, "why": "steps"}], set(), id="left by the probes"),
        pytest.param([PLANNED, {"kind": "error", "step": 100, "error": "ValueError"}, EXIT], set(), id="failed"),
    ],
)
def test_a_schedule_is_unfinished_when_the_job_ended_by_itself_before_four_fifths_of_it(
    events: Events, slugs: set[str]
) -> None:
    assert found(schedules.schedule_unfinished, [*steps(100), *events]) == slugs


def test_a_schedule_that_counts_steps_and_is_called_per_epoch_is_told_so() -> None:
    (item,) = evidence(schedules.schedule_unfinished, [*steps(9), {**PLANNED, "calls": 4, "turns": 390}, EXIT])
    assert "counts steps, and is called once for many" in item.fact
