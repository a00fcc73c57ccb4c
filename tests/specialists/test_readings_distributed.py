"""What the readings of distributed training say of events made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from records import evidence, found, steps

from torchtriage.specialists.distributed_training_strategies.readings import launch, replicas, samplers

ORDER = {
    "kind": "order", "step": 60, "path": "t.py", "line": 9, "again": 2, "changed": 0, "epoch": 0, "length": 50,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"sampler-epoch-not-set"}, id="three epochs alike"),
        pytest.param({"again": 1}, {"sampler-epoch-not-set"}, id="two epochs alike"),
        pytest.param({"changed": 1}, set(), id="told the epoch, one too late"),
    ],
)
def test_epochs_in_the_same_order(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(samplers.sampler_epoch_not_set, [*steps(60), {**ORDER, **change}]) == slugs


def test_the_last_word_on_a_sampler_counts() -> None:
    (item,) = evidence(samplers.sampler_epoch_not_set, [*steps(60), {**ORDER, "again": 1}, ORDER])
    assert (item.value, item.place.line) == (3.0, 9)
    assert "the same 50 indices in the same order" in item.fact


def test_the_line_that_begins_the_epochs_is_told_beside_the_sampler() -> None:
    items = evidence(samplers.sampler_epoch_not_set, [*steps(60), {**ORDER, "loop": ["t.py", 12]}])
    assert [item.place.line for item in items] == [9, 12]


REPLICA = {
    "kind": "replica", "step": 40, "number": 0, "name": "Net", "used": 0, "bypassed": 0, "running": 0,
    "averages": False, "several": 0, "spared": 0, "backwards": 0, "late": 0, "size": 178, "path": "t.py", "line": 9,
    "again": "t.py", "at": 17,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({"bypassed": 3, "running": 3}, {"wrapper-bypassed"}, id="never used"),
        pytest.param({"bypassed": 2, "running": 2}, set(), id="two steps"),
        pytest.param({"bypassed": 9, "running": 3, "used": 20}, set(), id="now and then"),
        pytest.param({"bypassed": 8, "running": 8, "used": 20}, {"wrapper-bypassed"}, id="left later"),
        pytest.param({"bypassed": 20, "running": 20, "averages": True}, set(), id="averaged by hand"),
        pytest.param({"used": 40}, set(), id="used"),
    ],
)
def test_steps_past_the_wrapper(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(replicas.wrapper_bypassed, [*steps(40), {**REPLICA, **change}]) == slugs


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({"several": 4, "backwards": 16}, {"no-sync-missing"}, id="four of four"),
        pytest.param({"several": 3, "backwards": 12}, set(), id="three steps"),
        pytest.param({"several": 20, "backwards": 40, "spared": 1}, set(), id="some are held back"),
    ],
)
def test_averages_in_vain(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(replicas.no_sync_missing, [*steps(40), {**REPLICA, "used": 20, **change}]) == slugs


def test_a_no_sync_around_backward_only_is_told_apart() -> None:
    event = {**REPLICA, "used": 20, "several": 20, "backwards": 80}
    (item,) = evidence(replicas.no_sync_missing, [*steps(20), event])
    assert (item.value, item.place.line) == (4.0, 17)
    assert "60 of 80 all-reduces of 178 values for nothing" in item.fact
    (item,) = evidence(replicas.no_sync_missing, [*steps(20), {**event, "late": 60}])
    assert "around backward only" in item.fact


@pytest.mark.parametrize(
    ("environment", "world_size", "said"),
    [
        pytest.param({"RANK": "4", "WORLD_SIZE": "4"}, 4, "RANK is 4, WORLD_SIZE 4", id="counted from 1"),
        pytest.param({"LOCAL_RANK": "2", "LOCAL_WORLD_SIZE": "2"}, 1, "LOCAL_RANK is 2", id="counted from 1 locally"),
        pytest.param({"LOCAL_WORLD_SIZE": "8", "WORLD_SIZE": "4"}, 4, "WORLD_SIZE only 4", id="more here than in all"),
        pytest.param({"RANK": "0", "WORLD_SIZE": "4"}, 1, "it trains alone", id="a group of one"),
        pytest.param(
            {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "4"}, 4, "", id="torchrun"
        ),
        pytest.param({"RANK": "9", "WORLD_SIZE": "16", "LOCAL_RANK": "1"}, 16, "", id="two machines"),
        pytest.param({"WORLD_SIZE": "4"}, 2, "", id="a group of some"),
        pytest.param({"RANK": "0"}, 1, "", id="no size is given"),
        pytest.param({}, 1, "", id="one process"),
        pytest.param({"RANK": "x", "WORLD_SIZE": ""}, 1, "", id="no numbers"),
    ],
)
def test_variables_of_the_launch(environment: dict[str, str], world_size: int, said: str) -> None:
    start = {"kind": "start", "step": 0, "rank": 0, "world_size": world_size, "environment": environment}
    items = evidence(launch.launch_environment, [start, *steps(40)])
    assert [said in item.fact for item in items] == ([True] if said else [])
    assert found(launch.launch_environment, [start, *steps(40)]) == ({"launch-environment"} if said else set())
