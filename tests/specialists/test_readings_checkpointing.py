"""What the readings of checkpointing and reproducibility say of events made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from records import evidence, found, steps

from torchtriage.specialists.checkpointing_and_reproducibility.readings import generators, saves, seeds, streams

REPEATS = {
    "kind": "repeats", "step": 8, "dataset": "Lines", "workers": 2, "alike": 8, "kinds": 8, "values": 72,
    "path": "t.py", "line": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"iterable-not-sharded"}, id="every batch twice"),
        pytest.param({"alike": 3, "kinds": 3}, set(), id="three rounds"),
        pytest.param({"kinds": 2}, set(), id="data that hardly change"),
        pytest.param({"values": 4}, set(), id="so few values that chance may do it"),
    ],
)
def test_batches_of_workers_that_are_equal(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(streams.iterable_not_sharded, [*steps(40), {**REPEATS, **change}]) == slugs


def test_a_stream_is_named_once_with_its_line() -> None:
    (item,) = evidence(streams.iterable_not_sharded, [*steps(40), {**REPEATS, "alike": 4}, REPEATS])
    assert (item.value, item.place.line) == (2.0, 9)
    assert "8 times in succession the 2 workers of Lines delivered 2 equal batches" in item.fact


SHARED = {
    "kind": "repeated-samples", "step": 9, "dataset": "Lines", "workers": 2, "samples": 64, "most": 64, "different": 64,
    "shared": 64, "path": "t.py", "line": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"iterable-not-sharded"}, id="the same samples in another order"),
        pytest.param({"shared": 30}, set(), id="some samples of both"),
        pytest.param({"different": 40, "shared": 40}, set(), id="drawn with replacement"),
        pytest.param({"samples": 16, "most": 16, "different": 16, "shared": 16}, set(), id="few samples"),
        pytest.param({"most": 200}, set(), id="one worker reads far more"),
    ],
)
def test_samples_of_an_epoch_that_every_worker_delivers(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(streams.iterable_not_sharded, [*steps(40), {**SHARED, **change}]) == slugs


DRAWN = {
    "kind": "drawn", "step": 8, "container": "Noisy.rng", "generator": "random.Random", "path": "t.py", "line": 9,
    "alike": 2, "of": 2, "again": 0, "learned": 8,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"dataset-owned-rng"}, id="two workers alike"),
        pytest.param({"alike": 1, "of": 1, "again": 1}, {"dataset-owned-rng"}, id="one worker, two epochs"),
        pytest.param({"alike": 1}, set(), id="seeded in each worker"),
        pytest.param({"alike": 0, "of": 0}, set(), id="nobody drew"),
        pytest.param({"learned": 0}, set(), id="the same noise in each validation"),
    ],
)
def test_generators_that_workers_copy(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(generators.dataset_owned_rng, [*steps(40), {**DRAWN, **change}]) == slugs


def test_a_generator_is_named_with_its_owner_and_the_line_that_makes_it() -> None:
    (item,) = evidence(generators.dataset_owned_rng, [*steps(40), DRAWN, {**DRAWN, "again": 2}])
    assert (item.place.line, item.place.container, item.value) == (9, "Noisy.rng", 3.0)
    assert "2 of 2 workers began with the same state of Noisy.rng (random.Random)" in item.fact
    assert "again in 3 epochs" in item.fact
    (item,) = evidence(generators.dataset_owned_rng, [*steps(40), {**DRAWN, "alike": 1, "of": 1, "again": 1}])
    assert item.fact.startswith("the worker began 2 epochs with the same state")


DRAW = {"seeds": False, "path": "t.py", "line": 9, "words": ["flip"]}
LOOSE = {
    "kind": "loose", "step": 30, "source": "random", "seeded": ["cuda", "torch"], "claims": ["torch"], "moved": 5,
    "path": "t.py", "line": 4, "draws": DRAW,
}  # fmt: skip
NO_LINE = {"seeds": False, "path": "", "line": 0, "words": []}


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"seeds-incomplete"}, id="Python's random"),
        pytest.param({"draws": {**DRAW, "words": ["print"]}}, set(), id="what only prints"),
        pytest.param({"draws": {**DRAW, "seeds": True}}, set(), id="seeded before torch was imported"),
        pytest.param({"draws": NO_LINE}, set(), id="drawn by a library"),
        pytest.param({"seeded": ["numpy"], "claims": ["numpy"]}, set(), id="torch is not seeded either"),
        pytest.param({"source": "torch", "claims": ["numpy"], "draws": {}}, set(), id="only the data are fixed"),
        pytest.param(
            {"source": "torch", "seeded": ["numpy", "random"], "claims": ["numpy", "random"], "draws": {}},
            {"seeds-incomplete"},
            id="all but torch",
        ),
    ],
)
def test_generators_that_nobody_seeded(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(seeds.seeds_incomplete, [*steps(40), {**LOOSE, **change}]) == slugs


def test_the_line_is_the_one_that_draws() -> None:
    (item,) = evidence(seeds.seeds_incomplete, [*steps(40), LOOSE])
    assert (item.place.path, item.place.line) == ("t.py", 9)
    assert "Python's random moved during the training, and nobody has seeded it, only torch's generator" in item.fact


HOLLOW = {
    "kind": "hollow", "step": 9, "model": "Net", "names": ["head.weight"], "empty": 0, "zero": 1, "of": 7, "numbers": 512,
    "path": "t.py", "line": 9,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "1 all zeros that"),
        ({"empty": 2, "zero": 0}, "2 empty that"),
        ({"empty": 2}, "2 empty and 1 all zeros that"),
    ],
)
def test_weights_that_are_saved_hollow_are_told_once(change: dict[str, Any], said: str) -> None:
    event = {**HOLLOW, **change}
    (item,) = evidence(saves.checkpoint_hollow, [*steps(20), event, {**event, "step": 19}])
    assert said in item.fact
    assert (item.place.line, item.place.module, item.place.step) == (9, "head.weight", 9)
