"""Ranks whose devices wait for each other: what is read from how long each did, in records made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from records import STEP

from torchtriage.catalog.load import catalog
from torchtriage.core.evidence import Inconclusive, Observed, Outcome
from torchtriage.diagnose import weigh
from torchtriage.examine.detector import perform
from torchtriage.examine.run.measures.figures import measurements
from torchtriage.examine.run.record import RankRecord, RunRecord
from torchtriage.specialists.distributed_training_strategies.readings import arrivals, communication, launch

COUNT = 60
LONG = 0.1  # seconds of a step
NETWORK = 0.002  # that every rank waits
Seconds = Callable[[int], float]
WRAPPER = {
    "kind": "wrapper", "step": 0, "name": "Net", "path": "train.py", "line": 9, "world": 2, "buckets": [4 << 20],
    "looks": 10, "spared": False,
}  # fmt: skip


def rank(
    number: int, world: int = 2, *, waits: Seconds = lambda _: NETWORK, certain: float = 1.0, steps: int = COUNT,
    look: dict[str, Any] | None = None, is_wrapped: bool = True, **more: float,
) -> RankRecord:  # fmt: skip
    """One whose device waits once in a step, at the end of backward, for as long as WAITS; MORE: of its own phases."""
    start = {"kind": "start", "step": 0, "rank": number, "world_size": world, "host": "node"}
    row = {**STEP, "cpu": 0.05, "queued": 0.0, "allocated": 2**20}
    rows = [{**row, "step": step} for step in range(COUNT)]
    devices = []
    for step in range(steps):
        waited = waits(step)
        spent = {"data": 0.0, "transfer": 0.0, "forward": 0.03, "backward": 0.06, "optimizer": 0.01, "busy": 0.09}
        for name, seconds in more.items():
            spent[name] += seconds
        wait = [["train.py", 30, "backward", 0, waited, certain * waited]] if waited else []
        seconds = sum(spent.values()) - spent["busy"] + waited
        devices.append(
            {"kind": "device", "at": step, "seconds": seconds, "communication": waited, "waits": wait, **spent}
        )
    looks = [{"kind": "collectives", "step": COUNT - 1, "base": 0, "ends": [], "groups": [], **look}] if look else []
    return RankRecord(number, (start, *[WRAPPER] * is_wrapped, *rows, *devices, *looks))


def outcome(detector: Any, *ranks: RankRecord) -> Outcome:
    (seen,) = perform([detector], RunRecord(ranks))
    return seen


def found(detector: Any, *ranks: RankRecord) -> set[str]:
    return {finding.fault.slug for finding in weigh.findings([outcome(detector, *ranks)], catalog())}


@pytest.mark.parametrize(
    ("waits", "slugs"),
    [
        pytest.param(lambda _: NETWORK + 0.03, {"straggler"}, id="in each step"),
        pytest.param(lambda _: NETWORK + 0.004, set(), id="for less than a tenth of a step"),
        pytest.param(lambda step: NETWORK + 0.06 * (step % 2), set(), id="in every other step"),
        pytest.param(lambda step: NETWORK + 0.5 * (step % 20 == 19), set(), id="now and then"),
        pytest.param(lambda step: NETWORK + 3.0 * (step < 6), set(), id="while the others warm up"),
        pytest.param(lambda _: NETWORK, set(), id="for the network alone"),
    ],
)
def test_a_rank_is_a_straggler_when_the_device_of_the_other_waits_longer(waits: Seconds, slugs: set[str]) -> None:
    slow = {"backward": 0.03, "busy": 0.03} if slugs else {}
    assert found(arrivals.straggler, rank(0, waits=waits), rank(1, **slow)) == slugs


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"backward": 0.03, "busy": 0.03}, "its kernels take 30.0 ms longer"),
        ({"data": 0.03}, "its device waits for batches 30.0 ms longer"),
        ({"transfer": 0.03}, "its copies to the device take 30.0 ms longer"),
        ({"forward": 0.03}, "its device has nothing to do, since its host is slow, 30.0 ms longer"),
    ],
)
def test_what_of_a_straggler_is_slow_is_told(more: dict[str, float], said: str) -> None:
    seen = outcome(arrivals.straggler, rank(0, waits=lambda _: NETWORK + 0.03), rank(1, **more))
    assert isinstance(seen, Observed)
    (told,) = seen.evidence
    assert told.place.rank == 1
    assert told.value == pytest.approx(0.03 / 0.132, rel=0.01)
    assert said in told.fact


def test_what_no_one_thing_explains_is_left_open() -> None:
    slow = {"data": 0.01, "transfer": 0.01, "backward": 0.01, "busy": 0.01}
    seen = outcome(arrivals.straggler, rank(0, waits=lambda _: NETWORK + 0.03), rank(1, **slow))
    assert isinstance(seen, Observed)
    assert "; its " not in seen.evidence[0].fact


def test_lateness_in_no_phase_is_inconclusive() -> None:
    seen = outcome(arrivals.straggler, rank(0, waits=lambda _: NETWORK + 0.03), rank(1))
    assert isinstance(seen, Inconclusive)
    assert "no phase of its steps is that much longer" in seen.why


@pytest.mark.parametrize(
    ("seconds", "certain", "told"),
    [
        (0.05, 1.0, {"communication-bound"}),
        (0.05, 0.9, {"communication-bound"}),
        (0.03, 1.0, set()),  # of which averages that are copied into gradients may be a third
        (0.01, 1.0, set()),
        (0.0001, 1.0, set()),
    ],
)
def test_communication_is_what_even_the_last_rank_waits(seconds: float, certain: float, told: set[str]) -> None:
    pair = [rank(n, waits=lambda _, n=n: seconds + 0.02 * n, certain=certain) for n in range(2)]  # type: ignore[misc]
    assert found(communication.communication, *pair) == told


def test_waiting_for_a_rank_is_no_communication() -> None:
    assert found(communication.communication, rank(0, waits=lambda _: 0.08), rank(1)) == set()


def test_a_wait_that_may_be_for_a_slow_host_is_too_close_to_call() -> None:
    pair = [rank(n, waits=lambda _: 0.05, certain=0.1) for n in range(2)]
    seen = outcome(communication.communication, *pair)
    assert isinstance(seen, Observed)
    assert seen.evidence[0].spread is not None
    assert seen.evidence[0].spread[0] < 0.2 < seen.evidence[0].value
    assert not weigh.findings([seen], catalog())


@pytest.mark.parametrize("detector", [arrivals.straggler, communication.communication])
@pytest.mark.parametrize(
    ("ranks", "why"),
    [
        pytest.param([rank(0, 3), rank(1, 3)], "records of 2 of 3 ranks", id="a rank without a record"),
        pytest.param([rank(0, look={"pairs": 9}), rank(1)], "send each other tensors", id="a pipeline"),
        pytest.param(
            [rank(n, 4, look={"groups": [["0", [0, 1, 2, 3]], ["1", [0, 1]]]}) for n in range(4)],
            "meet in several groups",
            id="groups",
        ),
        pytest.param([rank(0), rank(1, steps=12)], "in 0 steps", id="too few steps"),
        pytest.param([rank(n, waits=lambda _: 0.0) for n in range(2)], "in no call of Python's", id="compiled waits"),
        pytest.param(
            [
                rank(n, waits=lambda _: 0.0, is_wrapped=False, look={"groups": [["0", [0, 1]]], "rows": [[9] * 9]})
                for n in range(2)
            ],
            "in no call of Python's",
            id="waits of nobody known",
        ),
    ],
)
def test_what_the_devices_do_not_tell_is_inconclusive(detector: Any, ranks: list[RankRecord], why: str) -> None:
    seen = outcome(detector, *ranks)
    assert isinstance(seen, Inconclusive)
    assert why in seen.why


@pytest.mark.parametrize("detector", [arrivals.straggler, communication.communication])
def test_ranks_that_never_meet_are_nothing_to_look_at(detector: Any) -> None:
    seen = outcome(detector, *[rank(n, waits=lambda _: 0.0, is_wrapped=False) for n in range(2)])
    assert isinstance(seen, Observed)
    assert not seen.evidence


def test_the_phases_of_ranks_are_those_of_their_devices() -> None:
    told = measurements(RunRecord((rank(0, waits=lambda _: 0.05), rank(1, backward=0.048))))["ranks"]["each"]
    assert [each["seconds"]["communication"] for each in told] == pytest.approx([0.05, NETWORK])
    assert [each["seconds"]["backward"] for each in told] == pytest.approx([0.06, 0.108])
    assert [each["late"] for each in told] == pytest.approx([-0.048, 0.048])


def model(device: str, visible: dict[str, str] | None = None, count: int = 2) -> list[dict[str, Any]]:
    start = {"kind": "start", "step": 0, "world_size": 2, "host": "node", "environment": visible or {}}
    return [
        {**start, "devices": [{"name": "card", "memory": 1, "capability": []}] * count},
        {"kind": "setup", "step": 0, "models": [{"class": "Net", "devices": [device]}]},
        {**WRAPPER, "step": 0},
    ]


@pytest.mark.parametrize(
    ("first", "second", "is_one"),
    [
        pytest.param(model("cuda:0"), model("cuda:0"), True, id="one card"),
        pytest.param(model("sim:0"), model("sim:0"), True, id="one of another kind"),
        pytest.param(model("xpu:1"), model("xpu:1"), True, id="the second"),
        pytest.param(model("cuda:0"), model("cuda:1"), False, id="a card for each"),
        pytest.param(
            model("cuda:0", {"CUDA_VISIBLE_DEVICES": "0"}, 1),
            model("cuda:0", {"CUDA_VISIBLE_DEVICES": "1"}, 1),
            False,
            id="each sees its own",
        ),
        pytest.param(
            model("xpu:0", {"ZE_AFFINITY_MASK": "0"}, 1), model("xpu:0", {"ZE_AFFINITY_MASK": "1"}, 1), False,
            id="each sees its own, of another vendor",
        ),
        pytest.param(model("sim:0", count=1), model("sim:0", count=1), False, id="nobody knows whether it is one"),
        pytest.param(model("hpu:0"), model("hpu:0"), False, id="always number 0"),
        pytest.param(model("cpu"), model("cpu"), False, id="the host"),
    ],
)  # fmt: skip
def test_two_ranks_on_one_device_are_told_with_the_line(first: Any, second: Any, is_one: bool) -> None:
    seen = outcome(launch.launch_environment, RankRecord(0, tuple(first)), RankRecord(1, tuple(second)))
    assert isinstance(seen, Observed)
    assert [(each.place.line, each.place.rank) for each in seen.evidence] == ([(9, 1)] if is_one else [])
