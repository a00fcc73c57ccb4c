"""What the readings of tensor operations and memory say of events made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from records import LOADER, MIB, Events, evidence, found, outcome, steps

from torchtriage.core.evidence import Inconclusive
from torchtriage.specialists.tensor_operations_and_memory.readings import (
    emptied,
    evaluations,
    exhaustion,
    graphs,
    hosts,
    peaks,
    retained,
    states,
)

# Models that are evaluated with autograd on

EVALUATED = {
    "kind": "evaluated-with-graph", "step": 60, "root": "Net", "path": "t.py", "line": 9, "training": False,
    "passes": 40, "phases": 2, "nodes": 9,
}  # fmt: skip
LEARNED = {"kind": "learned-from", "step": 60, "root": "Net", "path": "t.py", "line": 9, "training": False}


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([EVALUATED], {"eval-builds-graph"}, id="two validations"),
        pytest.param([{**EVALUATED, "passes": 4}], set(), id="a look at a few samples"),
        pytest.param([{**EVALUATED, "passes": 4, "phases": 4}], {"eval-builds-graph"}, id="one pass now and then"),
        pytest.param([{**EVALUATED, "passes": 15, "training": True}], set(), id="a look in training mode"),
        pytest.param(
            [{**EVALUATED, "passes": 10, "phases": 10, "training": True}], {"eval-builds-graph"}, id="every fourth step"
        ),
        pytest.param(
            [{**EVALUATED, "passes": 11, "phases": 11, "training": True}], set(), id="more often: a part of it"
        ),
        pytest.param([EVALUATED, LEARNED], set(), id="an attack: later a backward went through"),
        pytest.param([EVALUATED, {**LEARNED, "training": True}], {"eval-builds-graph"}, id="one line for both modes"),
    ],
)
def test_passes_count_when_no_backward_ever_goes_through_them(events: Events, slugs: set[str]) -> None:
    assert found(evaluations.eval_builds_graph, [*steps(40), *events]) == slugs


def test_the_latest_count_of_a_line_is_told() -> None:
    earlier: dict[str, Any] = {**EVALUATED, "passes": 16, "phases": 1}
    (item,) = evidence(evaluations.eval_builds_graph, [*steps(40), earlier, EVALUATED])
    assert (item.place.path, item.place.line, item.value) == ("t.py", 9, 40)
    assert (
        "40 passes in 2 phases here, in evaluation mode and with autograd on: each recorded a graph of 9" in item.fact
    )


# Graphs that are retained, and states that are carried over steps

RETAINED = {
    "kind": "retained-graph", "step": 30, "path": "t.py", "line": 9, "idle": 16, "looked": 16, "needed": False,
    "maybe": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"retain-graph-needless"}, id="never gone through again"),
        pytest.param({"idle": 9}, set(), id="nine graphs"),
        pytest.param({"needed": True}, set(), id="once it was needed"),
        pytest.param({"maybe": True}, set(), id="the function may ask for gradients now and then"),
    ],
)
def test_a_graph_is_retained_for_nothing_when_it_is_let_go_unused(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(retained.retain_graph_needless, [*steps(40), {**RETAINED, **change}]) == slugs


CARRIED = {
    "kind": "carried-state", "step": 1, "nodes": [20], "retained": False, "root": "GRU", "state": "argument number 2",
    "path": "t.py", "line": 9,
}  # fmt: skip
ERROR = {"kind": "error", "step": 1, "error": "RuntimeError", "message": "", "path": "t.py", "line": 12}
SECOND = "Trying to backward through the graph a second time (or directly access saved tensors ...)"
IN_PLACE = "one of the variables needed for gradient computation has been modified by an inplace operation: [...]"
LINEAR = [20 + 5 * n for n in range(32)]


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([CARRIED, {**ERROR, "message": SECOND}], {"hidden-state-not-detached"}, id="a second backward"),
        pytest.param([CARRIED, {**ERROR, "message": IN_PLACE}], {"hidden-state-not-detached"}, id="weights have moved"),
        pytest.param([CARRIED, {**ERROR, "message": SECOND, "step": 9}], set(), id="the error came later"),
        pytest.param([{**ERROR, "message": SECOND}], set(), id="nothing was carried"),
        pytest.param([CARRIED, {**ERROR, "message": "out of memory"}], set(), id="another error"),
        pytest.param([{**CARRIED, "nodes": LINEAR}], {"hidden-state-not-detached"}, id="the graph grows to the end"),
        pytest.param([{**CARRIED, "nodes": LINEAR[:15]}], set(), id="fifteen steps"),
        pytest.param([{**CARRIED, "nodes": LINEAR[:8] + LINEAR[7:8] * 24}], set(), id="a window that is full"),
    ],
)
def test_a_state_is_called_when_backward_fails_on_it_or_its_graph_grows(events: Events, slugs: set[str]) -> None:
    assert found(states.hidden_state_not_detached, [*steps(40), *events]) == slugs


def test_graphs_that_hang_on_a_carried_state_are_not_told_twice() -> None:
    kept = {"since": 0, "alive": 38, "seen": 40, "lately": 40, "kept": "sum", "holder": "state", "bounded": False}
    pile = {"kind": "graphs", "step": 39, "path": "t.py", "line": 9, "nodes": 6, "bytes": 4, **kept}
    assert found(graphs.graph_retained, [*steps(40), pile]) == {"graph-retained"}
    assert found(graphs.graph_retained, [*steps(40), pile, {**CARRIED, "nodes": LINEAR}]) == set()


def test_graphs_that_the_ctx_of_a_function_keeps_are_left_to_its_own_page() -> None:
    kept = {"since": 0, "alive": 38, "seen": 40, "lately": 40, "kept": "within", "holder": "SquashBackward.out"}
    pile = {"kind": "graphs", "step": 39, "path": "t.py", "line": 9, "nodes": 6, "bytes": 4, **kept}
    assert found(graphs.graph_retained, [*steps(40), pile]) == {"graph-retained"}
    assert found(graphs.graph_retained, [*steps(40), {**pile, "is_on_ctx": True}]) == set()


# The allocator's cache

EMPTIED = {
    "kind": "cache-emptied", "step": 60, "path": "t.py", "line": 9, "calls": 60, "steps": 60, "first": 1, "last": 60,
    "asked": 180,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"empty-cache-in-loop"}, id="in every step"),
        pytest.param({"last": 600}, set(), id="once in ten steps"),
        pytest.param({"steps": 19, "last": 19}, set(), id="nineteen steps"),
    ],
)
def test_a_cache_that_is_emptied_in_most_steps_is_called(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(emptied.empty_cache_in_loop, [*steps(60), {**EMPTIED, **change}]) == slugs


def test_how_often_the_driver_is_asked_for_memory_is_told() -> None:
    (item,) = evidence(emptied.empty_cache_in_loop, [*steps(60), EMPTIED])
    assert "60 steps, 100% of those since step 1; the driver was asked for memory 3.0 times in each" in item.fact


# A device without memory

GIB = 2**30
OUT = (
    "CUDA out of memory. Tried to allocate {tried} GiB. GPU 0 has a total capacity of 80.00 GiB of which 0.50 GiB is free. "
    "Including non-PyTorch memory, this process has 79.00 GiB memory in use. Of the allocated memory {allocated} GiB is "
    "allocated by PyTorch, and {unused} GiB is reserved by PyTorch but unallocated."
)
START = {"kind": "start", "step": 0, "devices": [{"name": "A", "memory": 80 * GIB, "capability": [8, 0]}]}
RESIDENTS = {
    "kind": "residents", "step": 4, "parameters": 4 * GIB, "buffers": 0, "gradients": 4 * GIB, "states": 8 * GIB,
}  # fmt: skip
LARGE = {**RESIDENTS, "parameters": 15 * GIB, "gradients": 15 * GIB, "states": 30 * GIB}


def ended(tried: float = 2, allocated: float = 76, unused: float = 2) -> dict[str, Any]:
    message = OUT.format(tried=tried, allocated=allocated, unused=unused)
    return {"kind": "error", "step": 30, "error": "OutOfMemoryError", "message": message, "path": "t.py", "line": 12}


def on_device(peak: float, resting: float) -> Events:
    return steps(30, peak=peak * GIB, allocated=resting * GIB)


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([RESIDENTS, *on_device(74, 18)], {"peak-by-activations"}, id="a full device"),
        pytest.param([RESIDENTS, *on_device(40, 18)], set(), id="a device with room"),
        pytest.param([RESIDENTS, *on_device(40, 18), ended()], {"peak-by-activations"}, id="it ended"),
        pytest.param([LARGE, *on_device(74, 62)], {"peak-by-states"}, id="a large model"),
        pytest.param([RESIDENTS, *on_device(74, 40)], set(), id="neither: data kept on the device"),
        pytest.param([RESIDENTS, *steps(30)], set(), id="no device"),
    ],
)
def test_what_a_full_device_is_full_of(events: Events, slugs: set[str]) -> None:
    both = (peaks.peak_by_activations, peaks.peak_by_states)
    assert set().union(*(found(each, [START, *events]) for each in both)) == slugs


def test_without_the_size_of_the_states_the_peak_cannot_be_divided() -> None:
    seen = outcome(peaks.peak_by_activations, [START, ended()])
    assert isinstance(seen, Inconclusive)
    assert "before parameters" in seen.why
    assert found(peaks.peak_by_states, [START, ended()]) == set()


def test_the_parts_of_the_peak_are_told() -> None:
    (item,) = evidence(peaks.peak_by_activations, [START, RESIDENTS, *on_device(70, 18), ended(allocated=76)])
    assert (item.place.path, item.place.line, item.place.step) == ("t.py", 12, 30)
    parts = "4.00 GiB parameters, 4.00 GiB gradients, 8.00 GiB states, 2.00 GiB others that stay, 58.00 GiB of the step"
    assert f"of 80.00 GiB tensors held 76.00 GiB ({parts})" in item.fact
    assert item.value == pytest.approx(58 / 76)


@pytest.mark.parametrize(
    ("error", "slugs"),
    [
        pytest.param(ended(allocated=60, unused=18), {"fragmentation"}, id="eighteen unused, two asked for"),
        pytest.param(ended(tried=20, allocated=60, unused=18), set(), id="more asked for than unused"),
        pytest.param(ended(allocated=74, unused=4), set(), id="a twentieth of the device"),
        pytest.param({**ended(), "message": "index out of range"}, set(), id="another error"),
    ],
)
def test_memory_is_fragmented_when_what_is_unused_would_have_been_enough(
    error: dict[str, Any], slugs: set[str]
) -> None:
    assert found(exhaustion.fragmentation, [START, *steps(30), error]) == slugs


PEAK = {
    "kind": "memory-peak", "step": 1, "at": 1, "phase": "backward", "bytes": 76 * GIB, "gradients": GIB, "others": 2 * GIB,
    "steady": 70 * GIB, "capacity": 80 * GIB,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({}, {"peak-by-activations"}, id="in a backward pass"),
        pytest.param({"bytes": 71 * GIB}, set(), id="a device with room"),
        pytest.param({"phase": "evaluation"}, set(), id="in an evaluation"),
        pytest.param({"phase": "other"}, set(), id="between the phases"),
        pytest.param({"at": 0}, {"peak-by-activations"}, id="of the first step, and later ones come near it"),
        pytest.param({"at": 0, "steady": 50 * GIB}, set(), id="of the first step, which tries what is fastest"),
        pytest.param({"others": 40 * GIB}, set(), id="beside a data set"),
        pytest.param({"capacity": None}, {"peak-by-activations"}, id="whose size another line tells"),
    ],
)
def test_a_peak_counts_where_training_reaches_it(change: dict[str, Any], slugs: set[str]) -> None:
    both = (peaks.peak_by_activations, peaks.peak_by_states)
    events = [START, {**PEAK, **change}, RESIDENTS, *on_device(79, 18)]
    assert set().union(*(found(each, events) for each in both)) == slugs


FAILED = {
    "kind": "out-of-memory", "step": 30, "path": "t.py", "line": 12, "phase": "forward", "times": 1, "steps": 1,
    "parameters": 4 * GIB, "buffers": 0, "gradients": 0, "states": 8 * GIB, "others": 2 * GIB,
    "allocated": 70 * GIB, "reserved": 79 * GIB, "free": GIB, "capacity": 80 * GIB,
    "message": "XPU out of memory. Tried to allocate 2.00 GiB.",
}  # fmt: skip


def failures(*steps_of_them: int, **change: Any) -> Events:
    """One in each of these steps, at one line."""
    return [
        {**FAILED, "step": step, "times": count, "steps": len({*steps_of_them[:count]}), **change}
        for count, step in enumerate(steps_of_them, 1)
    ]


BROKEN = {"kind": "error", "step": 30, "error": "RuntimeError", "message": "no batch is small enough", "path": "t.py"}


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([*steps(30), ended()], {"device-out-of-memory"}, id="it ended, of an older record"),
        pytest.param([*steps(30), FAILED, ended()], {"device-out-of-memory"}, id="it ended"),
        pytest.param([*steps(60), *failures(3, 13, 23, 33, 43, 53)], {"device-out-of-memory"}, id="again and again"),
        pytest.param([*steps(60), *failures(0, 2, 4, 6, 8)], set(), id="a search"),
        pytest.param([*steps(60), *failures(33, 53)], set(), id="two batches"),
        pytest.param([*steps(19), *failures(3, 6, 9, 12, 15, 18)], set(), id="a run that may be a search"),
        pytest.param([*steps(30), *failures(30, 30, 30), BROKEN], {"device-out-of-memory"}, id="whatever the batch"),
        pytest.param([*steps(30), FAILED, BROKEN], set(), id="one, and another error"),
        pytest.param([*steps(30), *failures(30, 30, 30)], set(), id="a script that looks for the largest batch"),
    ],
)
def test_a_lack_of_memory_counts_unless_the_job_only_tried(events: Events, slugs: set[str]) -> None:
    assert found(exhaustion.device_out_of_memory, [START, *events]) == slugs


def test_what_held_the_memory_is_told() -> None:
    (item,) = evidence(exhaustion.device_out_of_memory, [START, *steps(60), *failures(33, 43, 53, is_in_handler=True)])
    assert (item.place.path, item.place.line, item.place.step) == ("t.py", 12, 53)
    assert item.fact == (
        "3 of 60 steps ran out of memory here, and the job caught the error; 2.00 GiB were asked for with 1.00 GiB free in "
        "the forward pass; of 80.00 GiB tensors held 70.00 GiB (4.00 GiB parameters, 8.00 GiB states, 2.00 GiB others that "
        "stay, 56.00 GiB of the step); it was tried again while the error of the try before was being handled, which keeps "
        "the tensors of that try"
    )


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        pytest.param({"reserved": 60 * GIB}, {"other-process-holds-memory"}, id="nineteen of others, two asked for"),
        pytest.param({"reserved": 68 * GIB}, set(), id="eleven, an eighth of the device"),
        pytest.param({"reserved": 78 * GIB}, set(), id="less than was asked for"),
        pytest.param({"free": None}, set(), id="a device that does not tell what is free"),
        pytest.param(
            {"reserved": 60 * GIB, "message": ended()["message"]}, set(), id="a message that tells what the process has"
        ),
    ],
)
def test_others_hold_what_is_neither_free_nor_of_this_process(change: dict[str, Any], slugs: set[str]) -> None:
    last = {**BROKEN, "message": FAILED["message"]}
    assert found(exhaustion.other_process_holds_memory, [START, *steps(30), {**FAILED, **change}, last]) == slugs


@pytest.mark.parametrize(
    ("phase", "slugs"),
    [
        ("forward", {"peak-by-activations"}),
        ("optimizer", {"peak-by-states"}),
        ("evaluation", set()),
    ],
)
def test_what_was_asked_for_belongs_to_the_phase_that_asked(phase: str, slugs: set[str]) -> None:
    message = "XPU out of memory. Tried to allocate 30.00 GiB."
    failed = {**FAILED, "phase": phase, "message": message, "allocated": 24 * GIB}
    both = (peaks.peak_by_activations, peaks.peak_by_states)
    events = [START, *steps(30), failed, {**BROKEN, "message": message}]
    assert set().union(*(found(each, events) for each in both)) == slugs


# Memory of the host

WORKERS = {**LOADER, "num_workers": 2}
SECOND = {"kind": "second-epoch", "step": 30}


def level(_step: int) -> int:
    return 0


def host(
    theirs: Callable[[int], float] = level,
    private: Callable[[int], float] = level,
    virtual: Callable[[int], float] = level,
    generation: Callable[[int], int] = level,
) -> Events:
    """Readings of 100 steps, in bytes above what there is at the start."""
    return [
        {
            "kind": "host", "step": n, "virtual": 9 * GIB + virtual(n), "private": GIB + private(n), "workers": 2,
            "theirs": GIB + theirs(n), "generation": generation(n),
        }
        for n in range(100)
    ]  # fmt: skip


def a_megabyte(step: int) -> float:
    return step * MIB


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([WORKERS, SECOND, *host(a_megabyte)], {"host-memory-growth"}, id="workers, to the end"),
        pytest.param([WORKERS, SECOND, *host(lambda n: min(n, 40) * MIB)], set(), id="a cache that is full"),
        pytest.param(
            [WORKERS, SECOND, *host(lambda n: n**0.5 * 10 * MIB)], set(), id="ever longer samples, more rarely"
        ),
        pytest.param([WORKERS, SECOND, *host(lambda n: n * 0.2 * MIB)], set(), id="twenty megabytes"),
        pytest.param(
            [WORKERS, SECOND, *host(lambda n: n % 25 * MIB, generation=lambda n: n // 25)],
            set(),
            id="new workers in each epoch",
        ),
        pytest.param([SECOND, *host(a_megabyte)], set(), id="other processes"),
        pytest.param(
            [*host(private=a_megabyte, virtual=a_megabyte)], {"host-memory-growth"}, id="the process, newly allocated"
        ),
        pytest.param([*host(private=a_megabyte)], set(), id="a buffer that was allocated at once"),
        pytest.param(
            [*host(private=a_megabyte, virtual=lambda n: (n > 50) * GIB)], set(), id="and another that was not used yet"
        ),
        pytest.param(
            [*host(private=a_megabyte, virtual=a_megabyte), {"kind": "container", "step": 50, "holder": "kept"}],
            set(),
            id="a container that memory-growth judges",
        ),
        pytest.param([], set(), id="a system that does not tell"),
    ],
)
def test_memory_of_the_host_is_called_when_it_is_ever_newly_allocated(events: Events, slugs: set[str]) -> None:
    assert found(hosts.host_memory_growth, [*events, *steps(100, batches=int(SECOND in events))]) == slugs


def test_growth_of_workers_is_judged_in_the_second_epoch() -> None:
    seen = outcome(hosts.host_memory_growth, [WORKERS, *host(a_megabyte), *steps(100)])
    assert isinstance(seen, Inconclusive)
    assert "2 loader workers grows by 1024 KiB per step, but the loader is still in its first epoch" in seen.why


def test_growing_workers_are_told_with_the_line_that_makes_a_sample() -> None:
    (item,) = evidence(hosts.host_memory_growth, [WORKERS, SECOND, *host(a_megabyte), *steps(100)])
    assert (item.place.path, item.place.line, item.unit) == ("train.py", 7, "KiB per step")
    assert item.value == pytest.approx(1024)
