"""What the readings of mixed precision say of events made by hand, look-alikes among them."""

from __future__ import annotations

from typing import Any

import pytest
from records import Events, evidence, found, outcome, steps

from torchtriage.core.evidence import Inconclusive
from torchtriage.specialists.mixed_precision_and_optimization.readings import (
    accumulation,
    calls,
    formats,
    paying,
    scaling,
    schedules,
    shapes,
)

WHERE = {"path": "t.py", "line": 9, "step": 0}
BYPASS = {"kind": "scaler-bypassed", **WHERE, "how": "step", "optimizer": "SGD", "times": 10, "scale": 65536.0}
RAISED = {
    "kind": "scaler-raised", **WHERE, "step": 1, "call": "step", "error": "RuntimeError", "message": calls.LATE_STEP,
    "stepped": ["t.py", 7], "direct": 0, "asked": 1, "backwards": 2, "whole": True, "added": False, "times": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        ({}, {"scaler-bypassed"}),
        ({"how": "backward"}, {"scaler-bypassed"}),
        ({"scale": None}, {"scaler-bypassed"}),
        ({"scale": 1.0}, set()),
    ],
)
def test_a_step_past_the_scaler_counts_where_the_scale_changes_anything(
    change: dict[str, Any], slugs: set[str]
) -> None:
    assert found(calls.scaler_bypassed, [*steps(9), {**BYPASS, **change}]) == slugs


def test_a_bypass_is_told_with_its_first_step_and_its_last_count() -> None:
    (item,) = evidence(calls.scaler_bypassed, [{**BYPASS, "times": 1}, {**BYPASS, "step": 9, "times": 10}])
    assert (item.place.step, item.place.line, item.value) == (0, 9, 10)
    assert (
        "stepped by itself, past the scaler, on gradients of a scaled loss, at least 10 times (the scale was 65536)"
        in item.fact
    )


def test_an_update_that_is_missing_is_told_with_the_step_before_and_the_line_that_raised() -> None:
    before, raised = evidence(calls.scaler_not_updated, [RAISED])
    assert (before.place.line, raised.place.line) == (7, 9)


def test_the_error_that_ends_a_job_tells_of_a_missing_update_where_no_probe_watched() -> None:
    error = {"kind": "error", **WHERE, "error": "RuntimeError", "message": f"unscale_() is {calls.LATE_UNSCALE}."}
    stepped = {"kind": "scaler-stepped", "step": 0, "path": "t.py", "line": 5}
    assert [item.place.line for item in evidence(calls.scaler_not_updated, [stepped, error])] == [5, 9]
    assert [item.place.line for item in evidence(calls.scaler_not_updated, [error])] == [9]
    assert found(calls.scaler_not_updated, [{**error, "message": f"{calls.TWICE}."}]) == set()


NOTHING = {"message": f"{calls.NOTHING_ASKED}.", "call": "update", "asked": 0}


@pytest.mark.parametrize(
    ("change", "bypassed", "not_updated", "touched"),
    [
        pytest.param({}, False, True, False, id="a second step"),
        pytest.param({"message": calls.LATE_UNSCALE}, False, True, False, id="unscaled after a step"),
        pytest.param({"message": calls.TWICE}, False, True, False, id="unscaled twice"),
        pytest.param({"message": calls.TWICE, "added": True}, False, False, True, id="unscaled between two passes"),
        pytest.param(NOTHING, False, False, True, id="updated in an iteration that does not step"),
        pytest.param({**NOTHING, "direct": 1}, False, False, False, id="updated after a step past the scaler"),
        pytest.param({**NOTHING, "whole": False}, False, False, False, id="not all was seen"),
        pytest.param({**NOTHING, "backwards": 0}, False, False, False, id="updated before anything was learned"),
        pytest.param({"message": "Attempted step but _scale is None."}, True, False, False, id="nothing was scaled"),
        pytest.param({"message": "out of memory"}, False, False, False, id="another error"),
    ],
)
def test_what_a_scaler_refuses_is_told_apart_by_what_came_before(
    change: dict[str, Any], bypassed: bool, not_updated: bool, touched: bool
) -> None:
    events = [*steps(9), {**RAISED, **change}]
    assert bool(found(calls.scaler_bypassed, events)) == bypassed
    assert bool(found(calls.scaler_not_updated, events)) == not_updated
    assert bool(found(calls.scaler_touched_mid_accumulation, events)) == touched


def test_a_missing_update_is_placed_at_the_step_that_it_should_follow() -> None:
    item, _ = evidence(calls.scaler_not_updated, [RAISED])
    assert item.place.line == 7
    (item,) = evidence(calls.scaler_not_updated, [{**RAISED, "message": calls.TWICE}])
    assert item.place.line == 9


def test_ever_new_scalers_are_never_updated() -> None:
    renewed = {"kind": "scaler-renewed", **WHERE, "steps": 3, "times": 1}
    assert found(calls.scaler_not_updated, [renewed]) == {"scaler-not-updated"}


def test_gradients_that_were_unscaled_and_added_to_are_called() -> None:
    added = {"kind": "unscaled-added", **WHERE, "parts": 1, "times": 3}
    assert found(calls.scaler_touched_mid_accumulation, [added]) == {"scaler-touched-mid-accumulation"}


# Formats

FLOAT16 = {"kind": "unscaled-float16", **WHERE, "optimizer": "SGD", "cast": 4, "of": 6, "off": False, "times": 3}
BFLOAT16 = {"kind": "scaled-bfloat16", **WHERE, "times": 3}
HALF = {
    "kind": "half-trained", **WHERE, "optimizer": "SGD", "trained": 4, "of": 4, "first": "body.0.weight",
    "refused": False, "cast": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("detector", "event", "slug"),
    [
        (formats.scaler_missing, FLOAT16, "scaler-missing"),
        (formats.scaler_with_bf16, BFLOAT16, "scaler-with-bf16"),
    ],
)
@pytest.mark.parametrize("times", [1, 3])
def test_a_format_without_its_scaler_is_called_when_it_is_a_habit(
    detector: Any, event: dict[str, Any], slug: str, times: int
) -> None:
    assert found(detector, [*steps(9), {**event, "times": times}]) == ({slug} if times >= 3 else set())


def test_a_scaler_that_is_off_is_told() -> None:
    further = [["the scaler that is switched off is built here", "t.py", 3], ["autocast is turned on here", "", 0]]
    item, built = evidence(formats.scaler_missing, [{**FLOAT16, "off": True, "further": further}])
    assert built.place.line == 3
    assert item.fact == (
        "4 of 6 parameters of SGD were used in float16, and it stepped on their gradients 3 times though no loss was "
        "scaled: the GradScaler that takes the step is switched off"
    )


CAST = {"kind": "cast", **WHERE, "module": "Net", "format": "float16"}
DTYPES = "mat1 and mat2 must have the same dtype, but got Float and Half"


@pytest.mark.parametrize(
    ("cast", "error", "message", "slugs"),
    [
        pytest.param("float16", "RuntimeError", DTYPES, {"dtype-mismatch"}, id="of the type that the error names"),
        pytest.param(
            "float64", "RuntimeError", "expected scalar type Double but found Float", {"dtype-mismatch"}, id="double"
        ),
        pytest.param("bfloat16", "RuntimeError", DTYPES, set(), id="of another type"),
        pytest.param("float16", "RuntimeError", "value cannot be converted to type Half", set(), id="of one type only"),
        pytest.param("float16", "ValueError", DTYPES, set(), id="of an error that is not torch's"),
        pytest.param("float16", "RuntimeError", "DataLoader worker exited", set(), id="of an error of another thing"),
    ],
)
def test_the_line_that_casts_a_module_is_told_where_the_error_names_its_type(
    cast: str, error: str, message: str, slugs: set[str]
) -> None:
    events = [*steps(9), {**CAST, "format": cast}, {"kind": "error", "step": 9, "error": error, "message": message}]
    assert found(formats.dtype_mismatch, events) == slugs


def test_a_backward_in_a_region_is_counted() -> None:
    inside = {"kind": "autocast-backward", **WHERE, "format": "bfloat16"}
    (item,) = evidence(formats.backward_in_autocast, [{**inside, "times": 1}, {**inside, "step": 9, "times": 10}])
    assert (item.place.step, item.value) == (0, 10)


def test_what_a_step_changes_of_float16_weights_is_measured() -> None:
    moved = [{"kind": "half-moved", "step": n, "at": n, "parameter": "body.0.weight", "share": 0.1 * n} for n in (0, 2)]
    (item,) = evidence(formats.half_model_trained, [HALF, *moved])
    assert (item.place.module, item.place.line) == ("body.0.weight", 9)
    assert "a step changed 10% of the weights of body.0.weight that had a gradient" in item.fact
    (item,) = evidence(formats.half_model_trained, [{**HALF, "refused": True, "cast": False}])
    assert item.fact.endswith("whose gradients a GradScaler refuses; where they were cast was not seen")


# Accumulation

MICRO = {
    "kind": "accumulated", **WHERE, "optimizer": "SGD", "rate": 1e-3, "passes": 4, "kinds": ["NllLoss"], "places": 1,
    "reached": 1, "calls": [1, 1, 1, 1], "batches": 4, "loaders": 1, "again": 0, "fed_back": False, "edited": False,
    "length": 32, "lengths": [32, 32, 32, 32],
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "is_called"),
    [
        pytest.param({}, True, id="micro-batches of a loader"),
        pytest.param({"batches": 0, "loaders": 0}, True, id="micro-batches without a loader"),
        pytest.param({"rate": None}, True, id="a rate that is no number"),
        pytest.param({"kinds": [""]}, False, id="a loss that is divided, or of an unknown kind"),
        pytest.param({"kinds": ["MseLoss", "NllLoss"]}, False, id="two kinds of loss"),
        pytest.param({"places": 2}, False, id="two lines, as of a GAN"),
        pytest.param({"reached": 2}, False, id="tasks with heads of their own"),
        pytest.param({"reached": 0}, False, id="nothing known of the parameters"),
        pytest.param({"calls": [1, 2, 1, 1]}, False, id="several calls of the model"),
        pytest.param({"calls": [3, 3, 3, 3]}, False, id="three calls of the model, of who knows what"),
        pytest.param({"calls": [3, 3, 3, 3], "delivered": True}, True, id="triplets of a batch"),
        pytest.param({"calls": [3, 1, 3, 3], "delivered": True}, False, id="triplets, and once one of them"),
        pytest.param({"calls": [1, 0, 0, 0]}, False, id="several losses of one call"),
        pytest.param({"batches": 1}, False, id="several passes for one batch"),
        pytest.param({"batches": 1, "lengths": [8, 8, 8, 8]}, True, id="pieces of one batch"),
        pytest.param({"batches": 1, "length": 0, "lengths": [0, 0, 0, 0]}, False, id="pieces of unknown length"),
        pytest.param({"loaders": 2}, False, id="a batch of each of several loaders"),
        pytest.param({"again": 3}, False, id="the same targets again"),
        pytest.param({"fed_back": True}, False, id="pieces of one sequence"),
        pytest.param({"edited": True}, False, id="gradients that the script divides"),
        pytest.param({"rate": 2.5e-4}, False, id="a rate that was divided by four"),
        pytest.param({"rate": 0.025}, False, id="another one"),
        pytest.param({"rate": 5e-4, "passes": 2}, False, id="a rate that was halved"),
        pytest.param({"rate": 2.5e-4, "divided": False}, True, id="a rate whose digits look divided"),
        pytest.param({"rate": 1e-3, "divided": True}, False, id="a rate that the script divides"),
    ],
)
def test_micro_batches_are_called_when_nothing_else_explains_their_sum(change: dict[str, Any], is_called: bool) -> None:
    detector = accumulation.loss_not_averaged_over_accumulation
    events = [{**MICRO, **change, "step": n} for n in range(4)]
    assert bool(found(detector, [*steps(9), *events])) == is_called
    assert not found(detector, [*steps(9), *events[:2]])
    assert not found(detector, [*steps(9), *events, {**MICRO, "kinds": ["", "NllLoss"]}])


def test_micro_batches_are_told_with_the_line_that_made_the_loss() -> None:
    events = [{**MICRO, "root": 7, "step": n} for n in range(4)]
    items = evidence(accumulation.loss_not_averaged_over_accumulation, [*steps(9), *events])
    assert [item.place.line for item in items] == [9, 7]


# Schedules

SCHEDULE = {
    "kind": "schedule-on-skips", **WHERE, "step": 59, "scheduler": "LinearLR", "taken": 48, "skips": 12, "advances": 60,
    "followed": 12, "first": 0,
}  # fmt: skip


def searching(skipped: int, of: int = 60) -> Events:
    """A run whose scaler skips its first steps, and then every one as long as they are more than its search."""
    told = [
        {
            "kind": "skip",
            **WHERE,
            "step": n,
            "turn": n,
            "total": n + 1,
            "scale": 2.0 ** (16 - n),
            "bad": 1,
            "of": 1,
            "nearest": "w",
        }
        for n in range(skipped)
    ]
    return [*steps(of, skipped=lambda n: int(n < skipped)), *told]


@pytest.mark.parametrize(
    ("events", "is_called"),
    [
        pytest.param([*searching(12), SCHEDULE], True, id="a fifth of the schedule"),
        pytest.param([*searching(12, 6000), SCHEDULE], False, id="12 of 6000"),
        pytest.param([*searching(12, 150), SCHEDULE], True, id="12 of 150, all of a search from far above"),
        pytest.param([*searching(12, 300), SCHEDULE], False, id="12 of 300, all of a search"),
        pytest.param([*searching(6, 70), {**SCHEDULE, "skips": 6, "followed": 6}], False, id="6 of 70, a search"),
        pytest.param([*searching(2), {**SCHEDULE, "skips": 2, "followed": 2}], False, id="two"),
        pytest.param([*searching(12), {**SCHEDULE, "advances": 8, "followed": 3}], False, id="a schedule by epochs"),
        pytest.param([*searching(45), SCHEDULE], False, id="a scale that collapses"),
        pytest.param(searching(12), False, id="no scheduler"),
    ],
)
def test_a_schedule_is_called_when_skipped_steps_are_a_share_of_it(events: Events, is_called: bool) -> None:
    assert bool(found(schedules.scheduler_on_skipped_step, events)) == is_called


def test_the_first_module_is_that_of_the_first_skip_after_the_search() -> None:
    events = searching(3)
    late = [
        {
            "kind": "skip",
            **WHERE,
            "step": n,
            "turn": n,
            "total": 3 + n // 10,
            "scale": 1.0,
            "bad": bad,
            "of": 4,
            "nearest": "head.bias",
        }
        for n, bad in ((20, 2), (30, 1), (40, None), (50, None))
    ]
    rows = [{**each, "skipped": 1} if each.get("step") in {20, 30, 40, 50} else each for each in events]
    (item,) = evidence(scaling.scale_collapsing, [*rows, *late])
    assert (item.place.step, item.place.module) == (20, "head.bias")
    assert "4 of 54 steps" in item.fact
    assert "2 of 4 gradients were not finite" in item.fact
    origin = {"kind": "non-finite", "step": 20, "path": "net.py", "line": 8, "module": "blocks.2"}
    _, place = (each.place for each in evidence(scaling.scale_collapsing, [*rows, *late, origin]))
    assert (place.line, place.module) == (8, "blocks.2")


@pytest.mark.parametrize(("by", "is_called"), [(1.0, False), (0.5, True)])
def test_a_scale_that_is_tried_again_and_again_does_not_collapse(by: float, is_called: bool) -> None:
    """A growth interval of six: every seventh step finds that twice the scale is still too much."""
    late = range(24, 100, 7)
    told = [
        {
            "kind": "skip",
            **WHERE,
            "step": n,
            "turn": n,
            "total": total,
            "scale": 2048 * by**total,
            "bad": 1,
            "of": 4,
            "nearest": "head.bias",
        }
        for total, n in enumerate(late)
    ]
    rows = steps(100, skipped=lambda n: int(n in late))
    assert bool(found(scaling.scale_collapsing, [*rows, *told])) == is_called


def test_every_new_scaler_may_search_for_its_scale() -> None:
    def folds(first: int) -> Events:
        """Five scalers of twenty steps, each of which skips its steps FIRST and FIRST + 1."""
        turns = [(20 * fold, turn) for fold in range(5) for turn in (first, first + 1)]
        skipped = {began + turn for began, turn in turns}
        told = [
            {
                "kind": "skip",
                **WHERE,
                "step": began + turn,
                "turn": turn,
                "total": number,
                "scale": 2.0 ** (16 - turn),
                "bad": 1,
                "of": 1,
                "nearest": "w",
            }
            for number, (began, turn) in enumerate(turns, start=1)
        ]
        return [*steps(100, skipped=lambda n: int(n in skipped)), *told]

    assert found(scaling.scale_collapsing, folds(0)) == set()
    assert found(scaling.scale_collapsing, folds(10)) == {"scale-collapsing"}


# What only a GPU shows

SETUP = {"kind": "setup", "step": 0, "precision": {"autocast": None, "matmul": "highest"}}
HALF_SETUP = {**SETUP, "precision": {"autocast": "bfloat16", "matmul": "highest"}}
ODD = {"layers": 1, "weights": 3000, "named": [["head", 30, 100]]}
NONE = {"layers": 0, "weights": 0, "named": []}
PRODUCTS = {
    "kind": "products", "step": 2, "layers": 4, "weights": 12000, "misaligned": {"2": ODD, "4": NONE},
    "capability": [8, 0], "matmul": "highest", "dtype": "float32",
}  # fmt: skip


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([SETUP, PRODUCTS], {"tf32-off"}, id="float32 on an A100"),
        pytest.param([SETUP, {**PRODUCTS, "matmul": "high"}], set(), id="with TF32"),
        pytest.param([SETUP, {**PRODUCTS, "capability": [7, 5]}], set(), id="float32 on a T4"),
        pytest.param([HALF_SETUP, {**PRODUCTS, "misaligned": {"2": NONE, "4": ODD}}], set(), id="bfloat16 on an A100"),
        pytest.param(
            [HALF_SETUP, {**PRODUCTS, "misaligned": {"2": NONE, "4": NONE}, "capability": [7, 5]}],
            {"bf16-emulated"},
            id="bfloat16 on a T4",
        ),
        pytest.param([HALF_SETUP, PRODUCTS], {"matmul-misaligned"}, id="a layer of odd sizes"),
        pytest.param([HALF_SETUP, {**PRODUCTS, "weights": 120_000}], set(), id="a small layer of odd sizes"),
        pytest.param(
            [SETUP, {**PRODUCTS, "matmul": "high", "misaligned": {"2": ODD, "4": ODD}}],
            {"matmul-misaligned"},
            id="odd in TF32",
        ),
        pytest.param([HALF_SETUP], set(), id="on a CPU"),
    ],
)
def test_what_a_gpu_computes_slowly_follows_from_its_kind_and_the_format(events: Events, slugs: set[str]) -> None:
    detectors = (shapes.bf16_emulated, shapes.tf32_off, shapes.matmul_misaligned)
    assert set().union(*(found(each, [*steps(9), *events]) for each in detectors)) == slugs


def test_layers_of_odd_sizes_are_named() -> None:
    (item,) = evidence(shapes.matmul_misaligned, [HALF_SETUP, PRODUCTS])
    assert item.place.module == "head"
    assert "1 of 4 linear layers, 25% of their weights, have sizes that are no multiple of 8 in bfloat16" in item.fact


# What autocast saves

COST = {"kind": "autocast-cost", **WHERE, "format": "bfloat16", "why": "", "pairs": [[0.03, 0.02]] * 4}


@pytest.mark.parametrize(
    ("pairs", "slugs"),
    [
        pytest.param([[0.03, 0.02]] * 4, {"autocast-not-paying"}, id="half as long again"),
        pytest.param([[0.021, 0.02]] * 4, set(), id="a twentieth more"),
        pytest.param([[0.01, 0.02]] * 4, set(), id="it pays"),
        pytest.param([[0.03, 0.02]] * 3 + [[0.02, 0.02]], set(), id="one pair says otherwise"),
        pytest.param([[0.03, 0.02]] * 3 + [[0.02, 0.008]], set(), id="a toy on a busy machine"),
    ],
)
def test_autocast_is_called_when_every_pair_says_so(pairs: list[list[float]], slugs: set[str]) -> None:
    assert found(paying.autocast_not_paying, [HALF_SETUP, *steps(20), {**COST, "pairs": pairs}]) == slugs


def test_autocast_of_a_pass_that_is_long_on_a_busy_machine_only_is_not_called() -> None:
    assert found(paying.autocast_not_paying, [HALF_SETUP, *steps(20, cpu=0.01, queued=0.03), COST]) == set()


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([HALF_SETUP, *steps(20, allocated=10**9)], "on a CPU only"),
        ([HALF_SETUP, *steps(20), {**COST, "why": "the module is gone"}], "the module is gone"),
        ([HALF_SETUP, *steps(20), {**COST, "pairs": [[0.03, 0.02]]}], "too short"),
    ],
)
def test_what_autocast_saves_is_not_guessed(events: Events, why: str) -> None:
    seen = outcome(paying.autocast_not_paying, events)
    assert isinstance(seen, Inconclusive)
    assert why in seen.why


def test_a_job_without_autocast_or_with_a_toy_says_nothing() -> None:
    for setup in (SETUP, HALF_SETUP):
        assert evidence(paying.autocast_not_paying, [setup, *steps(20)]) == ()
    assert evidence(paying.autocast_not_paying, [SETUP, *steps(20, allocated=10**9)]) == ()


# Gradients that the script changes by itself


def changes(
    *each: tuple[float, float, float, float, float], total: float = 1.0, count: int = 4, grows: float = 1.5
) -> Events:
    """COUNT changes of gradients whose factor falls as their size GROWS."""
    told = [
        {
            "kind": "edited-by-hand",
            "at": n,
            "step": n,
            "scale": 1024.0,
            "total": total,
            "met": ["t.py", 9],
            "lines": [["t.py", 3], ["t.py", 7]] if n > 1 else [],
            "each": [[one[0] / grows**n, *one[1:]] for one in each],
        }
        for n in range(count)
    ]
    return [*steps(20), *told]


SHORTENED, CLAMPED = (0.01, 0.0, 0.9, 0.4, 0.5), (0.02, 0.7, 0.0, 1.0, 6.0)


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param(changes(SHORTENED, SHORTENED), {"clip-before-unscale"}, id="to a norm of all"),
        pytest.param(
            changes(CLAMPED, (1.0, 0.0, 0.0, 0.2, 0.3)), {"clip-before-unscale"}, id="to a size of each number"
        ),
        pytest.param(changes(SHORTENED, count=2), set(), id="twice"),
        pytest.param(changes(SHORTENED, grows=1.0, total=3.0), set(), id="divided by a number"),
        pytest.param(changes(SHORTENED, total=100.0), set(), id="to a limit that was scaled as well"),
        pytest.param(changes((0.5, 0.4, 0.9, 0.4, 0.5)), set(), id="something that is no clip"),
        pytest.param(changes((0.5, 0.0, 0.9, 0.4, float("nan"))), set(), id="overflowed"),
    ],
)
def test_a_clip_by_hand_meets_one_limit_each_time(events: Events, slugs: set[str]) -> None:
    assert found(scaling.clip_before_unscale, events) == slugs


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"clip-before-unscale"}, id="one size each time"),
        pytest.param({"sizes": [0.2, 1.0]}, set(), id="sizes of their own"),
        pytest.param({"sizes": [0.2, 0.9], "norms": [1.0, 1.0]}, {"clip-before-unscale"}, id="one norm each time"),
        pytest.param({"scale": 4.0}, set(), id="a limit that was scaled as well"),
        pytest.param({"scale": None}, set(), id="no scale"),
    ],
)
def test_a_hook_that_clips_leaves_one_limit(change: dict[str, Any], slugs: set[str]) -> None:
    hook = {"kind": "clipped-by-hook", "scale": 1024.0, "line": ["t.py", 4], "sizes": [1.0, 1.0], "norms": [2.0, 3.0]}
    events = [{**hook, "step": n, "at": n, **change} for n in range(3)]
    assert found(scaling.clip_before_unscale, [*steps(9), *events]) == slugs


def test_factors_that_follow_the_batch_are_no_clip() -> None:
    events = [{**each, "total": 1.0 + n} if "each" in each else each for n, each in enumerate(changes(SHORTENED))]
    norms = [
        {**each, "each": [[*each["each"][0][:4], 1.0 + n]]} if "each" in each else each for n, each in enumerate(events)
    ]
    assert found(scaling.clip_before_unscale, norms) == set()


def test_a_clip_by_hand_is_told_with_its_line_and_that_of_the_call() -> None:
    items = evidence(scaling.clip_before_unscale, changes(SHORTENED, SHORTENED))
    assert [item.place.line for item in items] == [3, 7]
    assert "loss scale 1024 by itself, to a norm of all of 1" in items[0].fact


UNUSED = {"kind": "autocast-unused", **WHERE, "format": "bfloat16", "products": 4, "found": ["float32"], "times": 3}


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([UNUSED], {"autocast-without-effect"}, id="three passes"),
        pytest.param([{**UNUSED, "times": 1}], set(), id="one pass"),
        pytest.param([UNUSED, {"kind": "autocast-used", "step": 9}], set(), id="later it had one"),
    ],
)
def test_autocast_is_without_effect_when_no_pass_ever_held_its_format(events: Events, slugs: set[str]) -> None:
    assert found(formats.autocast_without_effect, [*steps(40), *events]) == slugs
