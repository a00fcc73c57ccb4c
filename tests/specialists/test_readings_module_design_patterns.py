"""What the readings of module design say of events made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from records import evidence, found, steps

from torchtriage.specialists.module_design_patterns.readings import (
    dropping,
    filling,
    frozen,
    holding,
    hooks,
    making,
    modes,
    repeating,
    trained,
    unused,
)

# The mode of a model that learns

LEARNED = {
    "kind": "learned-in-evaluation", "step": 25, "root": "Net", "steps": 10, "running": 10, "learned": 16, "first": 16,
    "path": "t.py", "line": 9, "called": "t.py", "at": 20, "kinds": {"dropout": 1, "batch norm": 2},
    "names": ["body.1"], "fresh": False, "mixed": 0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"mode-left-in-eval"}, id="after a validation"),
        pytest.param({"steps": 3, "running": 3}, set(), id="three steps may be a calibration"),
        pytest.param({"kinds": {}, "names": []}, set(), id="nothing that depends on the mode"),
        pytest.param({"mixed": 1}, set(), id="some parts are in training mode: a choice"),
        pytest.param(
            {"learned": 0, "kinds": {"batch norm": 2}}, set(), id="statistics of an earlier training are kept"
        ),
        pytest.param(
            {"learned": 0, "kinds": {"batch norm": 2}, "fresh": True}, {"mode-left-in-eval"}, id="no statistics"
        ),
        pytest.param({"learned": 0}, {"mode-left-in-eval"}, id="dropout off from the start"),
    ],
)
def test_learning_in_evaluation_mode(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(modes.mode_left_in_eval, [*steps(40), {**LEARNED, **change}]) == slugs


def test_the_line_is_that_of_eval_or_else_of_the_forward_pass() -> None:
    (item,) = evidence(modes.mode_left_in_eval, [*steps(40), LEARNED])
    assert (item.place.line, item.place.step) == (9, 16)
    (item,) = evidence(modes.mode_left_in_eval, [*steps(40), {**LEARNED, "path": "", "line": 0, "learned": 0}])
    assert item.place.line == 20
    assert "train() was never called; 1 dropout and 2 batch norms (module body.1)" in item.fact


def test_what_set_the_training_mode_just_before_is_told_beside_the_passes() -> None:
    passes, setting = evidence(modes.mode_left_in_train, [*steps(60), {**EVALUATED, "set": ["t.py", 4]}])
    assert (passes.place.line, setting.place.line) == (9, 4)


EVALUATED = {
    "kind": "evaluated-in-training", "step": 60, "root": "Net", "path": "t.py", "line": 9, "passes": 8, "fresh": 8,
    "again": 0, "phases": 4, "trained_on": 0, "since": 0, "words": ["run", "model"], "around": ["for", "x"],
    "dropped": False, "learned": 40, "backwards": 40, "kinds": {"dropout": 1}, "names": ["drop"], "momentum": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"mode-left-in-train"}, id="batches of a loader, now and then"),
        pytest.param({"learned": 0}, set(), id="it learns nothing itself, as a teacher"),
        pytest.param({"learned": 0, "words": ["validate"]}, {"mode-left-in-train"}, id="a slow copy that is validated"),
        pytest.param({"learned": 0, "words": ["validate", "teacher"]}, set(), id="a teacher by name"),
        pytest.param({"fresh": 0}, set(), id="no loader, no name"),
        pytest.param({"fresh": 0, "around": ["val"]}, {"mode-left-in-train"}, id="no loader, a name"),
        pytest.param({"fresh": 0, "around": ["val"], "words": ["mc"]}, set(), id="Monte Carlo by name"),
        pytest.param({"around": ["val", "monte", "carlo"]}, set(), id="Monte Carlo by a comment"),
        pytest.param({"again": 6}, set(), id="the same batch again"),
        pytest.param({"trained_on": 8}, set(), id="the batch just learned"),
        pytest.param({"dropped": True}, set(), id="the result is dropped"),
        pytest.param({"momentum": False}, set(), id="statistics as plain averages"),
        pytest.param({"kinds": {}}, set(), id="nothing that depends on the mode"),
        pytest.param({"passes": 40, "fresh": 40, "phases": 40}, set(), id="in every step: part of the training"),
        pytest.param({"passes": 1, "fresh": 1, "phases": 1, "around": ["val"]}, set(), id="a single look"),
        pytest.param({"learned": 0}, set(), id="a model that does not learn here"),
        pytest.param({"learned": 0, "backwards": 0}, {"mode-left-in-train"}, id="a job that only evaluates"),
        pytest.param({"learned": 0, "backwards": 0, "fresh": 0}, set(), id="a job that only samples"),
    ],
)
def test_evaluation_in_training_mode(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(modes.mode_left_in_train, [*steps(40), {**EVALUATED, **change}]) == slugs


def test_models_that_one_line_evaluates_one_after_another_are_told_together() -> None:
    (item,) = evidence(modes.mode_left_in_train, [*steps(40), EVALUATED, {**EVALUATED, "passes": 4}])
    assert item.fact.startswith("2 times a new Net was evaluated in training mode: 12 passes without gradients")


# Dropout and hooks

DROPPED = {
    "kind": "dropped", "step": 30, "path": "t.py", "line": 9, "passes": 4, "rate": 0.3, "layer": False,
    "module": "head", "words": ["forward", "head"],
}  # fmt: skip


@pytest.mark.parametrize(("words", "slugs"), [(["head"], {"dropout-always-on"}), (["monte", "carlo"], set())])
def test_a_dropout_in_evaluation_mode_is_called_unless_its_name_wants_it(words: list[str], slugs: set[str]) -> None:
    assert found(dropping.dropout_always_on, [*steps(40), {**DROPPED, "words": words}]) == slugs


def test_a_dropout_layer_made_for_the_call_is_told_apart() -> None:
    (item,) = evidence(dropping.dropout_always_on, [*steps(40), {**DROPPED, "layer": True}])
    assert item.fact.startswith("a dropout layer made for the call dropped values (p = 0.3) in 4 passes")
    assert (item.place.line, item.place.module) == (9, "head")


def test_attention_that_drops_is_named_since_it_takes_no_training() -> None:
    (item,) = evidence(dropping.dropout_always_on, [*steps(40), {**DROPPED, "attention": True}])
    assert item.fact.startswith("dropout_p of scaled_dot_product_attention dropped values (p = 0.3) in 4 passes")


HOOKS = {
    "kind": "hooks", "step": 7, "path": "t.py", "line": 9, "alive": 8, "list": "forward_hooks", "module": "0",
    "class": "Linear",
}  # fmt: skip


def test_hooks_are_counted_by_the_line_that_puts_them_there() -> None:
    (item,) = evidence(hooks.hook_handle_dropped, [*steps(40), HOOKS, {**HOOKS, "step": 15, "alive": 16}])
    assert item.fact == "16 forward hooks from one line are on one Linear by step 15"
    assert found(hooks.hook_handle_dropped, [*steps(40), HOOKS]) == {"hook-handle-dropped"}
    assert found(hooks.hook_handle_dropped, [*steps(40), {**HOOKS, "alive": 7}]) == set()


# What is no part of the model

UNREGISTERED = {
    "kind": "unregistered", "step": 20, "what": "modules", "filled": 20, "tensors": 6, "size": 600, "path": "t.py",
    "line": 9, "module": "body.layers", "container": "Stack.layers",
}  # fmt: skip


@pytest.mark.parametrize(
    ("what", "reading", "slug"),
    [
        ("modules", holding.unregistered_modules, "unregistered-modules"),
        ("tensor", holding.unregistered_tensor, "unregistered-tensor"),
    ],
)
def test_what_gets_gradients_outside_of_the_model_is_called(what: str, reading: Any, slug: str) -> None:
    event = {**UNREGISTERED, "what": what}
    assert found(reading, [*steps(40), event]) == {slug}
    assert found(reading, [*steps(40), {**event, "filled": 9}]) == set()
    (item,) = evidence(reading, [*steps(40), event, {**event, "filled": 40}])
    assert "Stack.layers" in item.fact
    assert "40 backward passes" in item.fact
    assert (item.place.line, item.place.module, item.place.container) == (9, "body.layers", "Stack.layers")


MADE = {
    "kind": "made", "step": 10, "path": "t.py", "line": 9, "layer": "Linear", "module": "block", "passes": 10,
    "of": 10, "made": 20, "kept": 20, "touched": 0, "size": 640,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"layer-built-in-forward"}, id="in every pass"),
        pytest.param({"passes": 9, "of": 9}, set(), id="nine passes"),
        pytest.param({"of": 100}, set(), id="when a shape changes"),
        pytest.param({"touched": 3}, set(), id="weights set by hand"),
        pytest.param({"kept": 2}, set(), id="weights that take no part"),
    ],
)
def test_layers_made_in_forward(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(making.layer_built_in_forward, [*steps(40), {**MADE, **change}]) == slugs


# Layers in several places, parameters in none

REPEATED = {
    "kind": "repeated", "step": 1, "path": "t.py", "line": 9, "module": "layers", "layer": "Linear", "times": 6,
    "places": 6, "kinds": 1, "parameters": 272, "container": "ModuleList",
}  # fmt: skip


def test_a_layer_in_several_places_is_called_with_what_it_weighs() -> None:
    assert found(repeating.layers_shared_by_repetition, [*steps(40), REPEATED]) == {"layers-shared-by-repetition"}
    (item,) = evidence(repeating.layers_shared_by_repetition, [*steps(40), REPEATED])
    assert item.fact == "6 of 6 places of a ModuleList are one and the same Linear: 272 weights in all"
    items = evidence(repeating.layers_shared_by_repetition, [*steps(40), {**REPEATED, "again": "layers.1"}])
    assert [each.place.module for each in items] == ["layers", "layers.1"]


END = {"kind": "end", "step": 40, "why": "exit"}
UNUSED = {
    "kind": "unused", "step": 40, "optimizer": "Adam", "steps": 40, "size": 16, "ran": False, "frozen": False,
    "name": "norm2.weight", "module": "norm2", "path": "t.py", "line": 9, "partly": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"parameter-never-used"}, id="its module is never called"),
        pytest.param({"steps": 29}, set(), id="not yet"),
        pytest.param({"ran": True}, set(), id="its module runs and is cut off"),
        pytest.param({"ran": True, "partly": True}, {"parameter-never-used"}, id="its module runs without it"),
        pytest.param({"frozen": True}, set(), id="runs under no_grad"),
    ],
)
def test_a_parameter_without_gradients(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(unused.parameter_never_used, [*steps(40), {**UNUSED, **change}, END]) == slugs


def test_what_may_still_be_used_is_not_called_unused() -> None:
    assert found(unused.parameter_never_used, [*steps(40), UNUSED]) == set()
    assert found(unused.parameter_never_used, [*steps(40), UNUSED, {**END, "why": "steps"}]) == set()


def test_parameters_of_one_module_are_one_piece_of_evidence() -> None:
    (item,) = evidence(unused.parameter_never_used, [*steps(40), UNUSED, {**UNUSED, "name": "norm2.bias"}, END])
    assert item.fact.startswith("norm2.weight, norm2.bias (32 numbers of Adam, whose module was not called)")


UNFILLED = {
    "kind": "unfilled", "step": 0, "class": "Project", "path": "t.py", "line": 9, "shape": [4, 8], "module": "weight",
    "smallest": 0.0, "largest": 3e32, "finite": 30, "strange": True, "zero": False, "by_hand": False, "of": 32,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"uninitialised-parameter"}, id="what was there before"),
        pytest.param({"zero": True}, {"uninitialised-parameter"}, id="a fresh page"),
        pytest.param({"zero": True, "by_hand": True}, set(), id="zeros, perhaps written"),
        pytest.param({"zero": True, "shape": [8]}, set(), id="a bias of zeros"),
    ],
)
def test_parameters_that_nobody_fills(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(filling.uninitialised_parameter, [*steps(40), {**UNFILLED, **change}]) == slugs


def test_what_the_memory_held_is_told() -> None:
    (item,) = evidence(filling.uninitialised_parameter, [*steps(40), UNFILLED])
    assert item.fact.endswith("sizes from 0.0e+00 to 3.0e+32, 2 of 32 looked at not finite")


def test_tensors_that_no_constructor_makes_again_are_told() -> None:
    event = {
        "kind": "not-kept",
        "step": 20,
        "how": "fitted",
        "name": "Standardize.shift",
        "size": 8,
        "module": "first",
        "path": "t.py",
        "line": 4,
    }
    (item,) = evidence(holding.unregistered_tensor, [event])
    assert (item.place.line, item.place.module) == (4, "first")
    assert "was computed from data, and forward uses it" in item.fact


TRAINED = {"kind": "trained", "step": 1, "model": "Net", "layers": 2, "of": 1000, "trained": 48, "norms": 48}


@pytest.mark.parametrize(
    ("change", "slugs"),
    [({}, {"only-norms-trained"}), ({"trained": 50}, set()), ({"trained": 900, "norms": 40}, set())],
)
def test_a_model_is_told_of_which_only_norms_are_trained(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(trained.only_norms_trained, [*steps(9), {**TRAINED, **change}]) == slugs


# Layers that are frozen as they were made

FROZEN = {
    "kind": "frozen-at-random", "step": 40, "model": "Network", "names": ["stem.0", "layers.2.0"],
    "kinds": ["BatchNorm2d", "Conv2d", "Linear", "Network"], "matrices": 4, "drawn": 4, "layers": 4, "frozen": 900,
    "of": 1000, "steps": 40, "path": "t.py", "line": 5,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"frozen-at-random"}, id="a backbone without its weights"),
        pytest.param({"drawn": 3}, set(), id="one weight that nobody draws so"),
        pytest.param({"layers": 1, "matrices": 1, "drawn": 1}, set(), id="features of one layer"),
        pytest.param({"layers": 2, "matrices": 2, "drawn": 2}, set(), id="features of two layers"),
        pytest.param({"layers": 3, "matrices": 3, "drawn": 3}, {"frozen-at-random"}, id="a small encoder"),
        pytest.param({"frozen": 400}, set(), id="a stem that is kept still"),
        pytest.param({"frozen": 40, "tables": True, "measurable": 30}, {"frozen-at-random"}, id="all embeddings"),
        pytest.param({"frozen": 40, "tables": True, "measurable": 10}, set(), id="embeddings too small to tell"),
        pytest.param({"frozen": 40, "tables": False, "measurable": 30}, set(), id="some embeddings, or other layers"),
        pytest.param({"steps": 12}, set(), id="a program that is tried out"),
        pytest.param({"kinds": ["Linear", "RandomFeatures"]}, set(), id="by its name"),
        pytest.param({"names": ["reservoir.0"]}, set(), id="by the name of a part"),
        pytest.param({"names": ["brand.0", "systema.1"]}, {"frozen-at-random"}, id="names that only sound so"),
    ],
)
def test_layers_are_frozen_at_random_where_most_of_a_deep_model_is(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(frozen.frozen_at_random, [*steps(40), {**FROZEN, **change}]) == slugs


def test_the_line_that_makes_the_first_frozen_layer_is_told_with_the_share() -> None:
    (item,) = evidence(frozen.frozen_at_random, [*steps(40), FROZEN])
    assert (item.place.path, item.place.line, item.place.module, item.value) == ("t.py", 5, "stem.0", 0.9)
    assert item.fact.startswith("90% of the numbers of Network were frozen in all 40 steps")
