"""What limits a step on a device, of records made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from records import Events, evidence, found, given_verdicts, outcome, steps

from torchtriage.core.evidence import Inconclusive
from torchtriage.specialists.performance_profiling.readings.limits import (
    host_pace,
    pinned_wait,
    sync_wait,
    transfer_wait,
)
from torchtriage.specialists.performance_profiling.readings.shares import compute_share

COUNT = 60
MIB = 2**20


def wait(
    call: str = "item", line: int = 7, times: int = 1, path: str = "train.py", **seconds: float
) -> tuple[str, int, str, int, float, float, float, float, float]:
    """A wait of 40 ms of a step of 100, after which the device idles for 30, unless SECONDS say otherwise."""
    told = {"waited": 0.04, "idle": 0.03, "lost": 0.03, "copied": 0.0, "worked": 0.03} | seconds
    return path, line, call, times, told["waited"], told["idle"], told["lost"], told["copied"], told["worked"]


def job(*waits: Any, every: int = 1, further: Events = (), **device: Any) -> Events:  # type: ignore[assignment]
    """60 steps of 100 ms on a device, EVERY so many with WAITS."""
    events: Events = [*further, *steps(COUNT, allocated=MIB)]
    for step in range(COUNT):
        timed = {"seconds": 0.1, "forward": 0.03, "backward": 0.06, "optimizer": 0.01, "busy": 0.0, **device}
        events.append({"kind": "device", "at": step, **timed})
        events.append({"kind": "host-waits", "at": step, "waits": list(waits) if step % every == 0 else []})
    return events


@pytest.mark.parametrize(
    ("events", "is_found"),
    [
        pytest.param(job(wait()), True, id="in each step"),
        pytest.param(job(wait(), wait(line=9)), True, id="in two lines"),
        pytest.param(job(wait(times=0), wait(line=9)), True, id="one of which only idles on"),
        pytest.param(job(wait(idle=0.001, lost=0.001)), False, id="at the end of a step that the device limits"),
        pytest.param(job(wait(lost=0.01)), False, id="for a tenth of the step"),
        pytest.param(job(wait(), every=2), False, id="in each second step"),
        pytest.param(job(wait(), every=50), False, id="in each fiftieth"),
        pytest.param(job(wait(path="", line=0)), False, id="in a library, or in an evaluation"),
        pytest.param(job(wait("to from pageable memory")), False, id="for a copy to the device"),
        pytest.param(job(), False, id="never"),
        pytest.param(steps(COUNT), False, id="without a device"),
    ],
)
def test_waits_that_cost_time_in_each_step_are_sync_bound(events: Events, is_found: bool) -> None:
    assert found(sync_wait, events) == ({"sync-bound"} if is_found else set())


def test_each_line_is_told_with_what_it_costs_the_dearest_first() -> None:
    cheap = wait(line=11, waited=0.001, idle=0.001, lost=0.001)
    seen = evidence(sync_wait, job(wait(), wait("cpu", 9, 3, waited=0.05, idle=0.04, lost=0.04), cheap, busy=0.03))
    assert [(each.place.path, each.place.line) for each in seen] == [("train.py", 9), ("train.py", 7)]
    assert [each.value for each in seen] == pytest.approx([0.71, 0.71])
    assert seen[0].fact == (
        "71% of a step is lost to waits for the device: cpu() makes the host wait 3.0 times a step, 50 ms of 100 ms; "
        "in 100% of the steps the device has nothing to do in the end, for 40 ms a step (57 steps)"
    )


@pytest.mark.parametrize(
    ("waits", "busy", "said", "high"),
    [
        pytest.param(
            [wait(lost=0.1 * 0.1, worked=0.0)], 0.0, "10% to 40%", 0.4, id="short kernels, which may leave gaps"
        ),
        pytest.param([wait(lost=0.1 * 0.1, worked=0.0)], 0.08, "10% to 20%", 0.2, id="as the device certainly works"),
        pytest.param([wait(lost=0.1 * 0.1, worked=0.09)], 0.0, "10%", 0.1, id="as it works while the host waits"),
        pytest.param([wait(lost=0.1 * 0.1)[:-1]], 0.0, "10%", 0.1, id="a record of before that was measured"),
    ],
)
def test_what_a_step_gains_at_most_is_told_too(waits: list[Any], busy: float, said: str, high: float) -> None:
    (seen,) = evidence(sync_wait, job(*waits, busy=busy))
    assert seen.fact.startswith(f"{said} of a step is lost")
    assert seen.spread == pytest.approx((0.1, high))


def readings(*shares: float, elsewhere: int = 0) -> Events:
    """What the device tells of itself: the first is of the start of the job."""
    return [
        {"kind": "utilization", "at": 16 * at, "since": 16, "share": share, "elsewhere": elsewhere}
        for at, share in enumerate((0.1, *shares), 1)
    ]


COPY = wait("to from pageable memory", 5, idle=0.0, lost=0.0)


@pytest.mark.parametrize(
    ("events", "value", "spread"),
    [
        pytest.param(job(wait(lost=0.01), further=readings(0.5, 0.5)), 0.4, (0.4, 0.4), id="as long as the host waits"),
        pytest.param(job(wait(lost=0.01), further=readings(0.75, 0.75)), 0.25, (0.24, 0.26), id="as no kernel runs"),
        pytest.param(job(wait(lost=0.01), further=readings(0.7, 0.8)), 0.25, (0.19, 0.31), id="readings that differ"),
        pytest.param(job(wait(lost=0.01), further=readings(0.99, 0.99)), 0.1, (0.1, 0.1), id="no less than it idled"),
        pytest.param(
            job(wait(lost=0.01), COPY, further=readings(0.75, 0.75)), 0.1, (0.1, 0.26), id="beside a copy that waits"
        ),
        pytest.param(
            job(wait(lost=0.01), further=readings(0.75)), 0.1, (0.1, 0.4), id="of one reading nothing is known"
        ),
        pytest.param(
            job(wait(lost=0.01), further=readings(0.75, 0.75, elsewhere=2**32)),
            0.1,
            (0.1, 0.4),
            id="shared with others",
        ),
    ],
)
def test_a_step_gains_what_neither_the_host_nor_the_kernels_need(
    events: Events, value: float, spread: tuple[float, float]
) -> None:
    (seen,) = evidence(sync_wait, events)
    assert seen.value == pytest.approx(value, abs=1e-9)
    assert seen.spread == pytest.approx(spread, abs=1e-9)


def test_a_device_that_does_not_tell_whether_it_idles_is_not_judged() -> None:
    events = [{**each, "is_counted": False} if each["kind"] == "host-waits" else each for each in job(wait())]
    seen = outcome(sync_wait, events)
    assert isinstance(seen, Inconclusive)
    assert "does not tell whether it had work" in seen.why


@pytest.mark.parametrize("detector", [sync_wait, transfer_wait, pinned_wait, host_pace, compute_share])
def test_a_device_without_events_is_not_judged(detector: Any) -> None:
    events = [each for each in job(wait()) if each["kind"] != "device"]
    seen = outcome(detector, events)
    assert isinstance(seen, Inconclusive)
    assert "0 steady steps were timed on the device" in seen.why


@pytest.mark.parametrize(
    ("copied", "is_found"), [pytest.param(0.3, True, id="long"), pytest.param(0.01, False, id="short")]
)
def test_copies_that_the_host_waits_for_are_transfer_bound(copied: float, is_found: bool) -> None:
    copy = wait("to from pageable memory", waited=0.05, copied=copied * 0.1)
    assert found(transfer_wait, job(copy)) == ({"transfer-bound"} if is_found else set())
    assert found(transfer_wait, job(copy, every=50)) == set()


def test_copies_are_told_with_their_memory() -> None:
    (seen,) = evidence(transfer_wait, job(wait("to from pageable memory", copied=0.03)))
    assert seen.fact == (
        "30% of a step the device does nothing but copy from the host: to() copies from pageable memory 1.0 times a "
        "step, for 30 ms of 100 ms (57 steps)"
    )


def test_a_copy_from_pinned_memory_that_blocks_is_told() -> None:
    (seen,) = evidence(pinned_wait, job(wait("to from pinned memory", 12, waited=0.004)))
    assert (seen.place.line, seen.fact) == (
        12,
        "to() copies from pinned memory without non_blocking=True: the host waits 1.0 times a step, for 4 ms (57 steps)",
    )
    assert found(pinned_wait, job(wait("to from pinned memory"))) == {"pin-memory-blocking"}
    assert found(pinned_wait, job(wait("to from pageable memory"), wait())) == set()


SHORT = wait(waited=0.001)
AID = {"kind": "aid", "aid": "anomaly mode", "on": 60, "of": 60, "path": "", "line": 0}


@pytest.mark.parametrize(
    ("events", "is_found"),
    [
        pytest.param(job(host_paced=0.095), True, id="at the end of each phase"),
        pytest.param(job(SHORT, host_paced=0.095), True, id="with a wait that is short"),
        pytest.param(job(wait(), host_paced=0.095), False, id="since the host waits"),
        pytest.param(job(host_paced=0.06), False, id="at the end of some phases"),
        pytest.param(job(), False, id="never"),
        pytest.param(steps(COUNT), False, id="without a device"),
    ],
)
def test_a_device_that_always_has_caught_up_is_bound_by_its_host(events: Events, is_found: bool) -> None:
    assert given_verdicts(host_pace, events) == ({"host-bound"} if is_found else set())
    assert found(host_pace, events) == set()


@pytest.mark.parametrize(
    ("events", "why"),
    [
        pytest.param(job(host_paced=0.095, overhead=0.02), "probes took 20% of the host's time", id="probes"),
        pytest.param(job(host_paced=0.095, further=[AID]), "a debugging aid is on", id="an aid"),
        pytest.param(
            job(host_paced=0.095, further=[{"kind": "start", "environment": {"CUDA_LAUNCH_BLOCKING": "1"}}]),
            "CUDA_LAUNCH_BLOCKING is on",
            id="launches that block",
        ),
    ],
)
def test_a_host_that_something_else_makes_slow_is_not_judged(events: Events, why: str) -> None:
    seen = outcome(host_pace, events)
    assert isinstance(seen, Inconclusive)
    assert why in seen.why


@pytest.mark.parametrize(
    ("busy", "verdicts"), [pytest.param(0.09, {"compute-bound"}, id="busy"), pytest.param(0.05, set(), id="half idle")]
)
def test_a_device_that_is_busy_for_most_of_a_step_is_compute_bound(busy: float, verdicts: set[str]) -> None:
    assert given_verdicts(compute_share, job(busy=busy)) == verdicts


@pytest.mark.parametrize(
    ("shares", "verdicts"),
    [
        pytest.param((0.65, 0.7), {"compute-bound"}, id="most of the time"),
        pytest.param((0.55, 0.7), set(), id="now and then"),
        pytest.param((0.3, 0.3), set(), id="seldom, though events leave it open"),
    ],
)
def test_a_device_that_tells_how_long_kernels_run_is_taken_at_its_word(
    shares: tuple[float, ...], verdicts: set[str]
) -> None:
    assert given_verdicts(compute_share, job(further=readings(*shares), busy=0.09)) == verdicts


def test_collectives_on_a_device_are_not_called_computing() -> None:
    seen = outcome(compute_share, [{"kind": "wrapper", "name": "DistributedDataParallel"}, *job(busy=0.09)])
    assert isinstance(seen, Inconclusive)
    assert "collectives run on the device's timeline" in seen.why
