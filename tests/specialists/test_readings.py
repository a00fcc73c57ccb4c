"""Readings are arithmetic: what they say of events made by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from records import LOADER, MIB, Events, evidence, found, given_verdicts, outcome, steps

from torchtriage.catalog.load import catalog
from torchtriage.core.evidence import Inconclusive
from torchtriage.diagnose import weigh
from torchtriage.examine.run.series.ratio import ratio
from torchtriage.specialists.debugging_techniques.readings import origins, updates
from torchtriage.specialists.mixed_precision_and_optimization.readings import scaling as precision
from torchtriage.specialists.performance_profiling.readings import shares as profiling
from torchtriage.specialists.tensor_operations_and_memory.readings import graphs, growth
from torchtriage.triage import detectors

# Waiting for data


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param(steps(40, data=0.05), {"input-bound"}, id="half of the step"),
        pytest.param(steps(40, data=0.02), set(), id="a fifth of the step"),
        pytest.param(steps(40, data=lambda n: 0.2 if n == 20 else 0.025), set(), id="one late batch"),
        pytest.param(steps(40, data=lambda n: 0.09 * (n % 2)), {"input-bound"}, id="two workers in turns"),
        pytest.param(steps(40, data=0.0015, seconds=0.003), set(), id="a toy whose loader needs a millisecond"),
        pytest.param(steps(40, data=0.05, probes=0.02), {"input-bound"}, id="probes are not the job"),
    ],
)
def test_waiting_is_called_when_the_near_end_of_its_share_is_above_the_bound(events: Events, slugs: set[str]) -> None:
    assert found(profiling.data_wait, [LOADER, *events]) == slugs
    assert given_verdicts(profiling.data_wait, [LOADER, *events]) == slugs


def test_waiting_names_the_loader_and_the_line_that_makes_a_sample() -> None:
    (item,) = evidence(profiling.data_wait, [LOADER, *steps(40, data=0.05)])
    assert (item.place.path, item.place.line) == ("train.py", 7)
    assert item.value == pytest.approx(0.5)
    assert item.fact == (
        "50% of a step is waiting for the next batch (50.0 ms of 100.0 ms, 37 steps): "
        "DataLoader(Digits, batch_size=16, num_workers=0, pin_memory=False), samples come from Digits.__getitem__"
    )


def passes(every: int, start: float) -> Events:
    """160 steps of 10 ms; a pass begins in one of so many, and its first batch takes START seconds to come."""
    begins = {"epochs": lambda n: int(not n % every), "data": lambda n: 0.0 if n % every else start}
    made = {"kind": "fetch", "step": 0, "workers": 8, "worker": 0, "batches": 40, "samples": 0.4, "collate": 0.04}
    return [made, *steps(160, seconds=lambda n: 0.01 + (0.0 if n % every else start), **begins)]


@pytest.mark.parametrize(
    ("change", "events", "slugs"),
    [
        pytest.param({}, passes(16, 0.3), {"input-bound"}, id="ten starts of 0.3 s"),
        pytest.param({"persistent_workers": True}, passes(16, 0.3), set(), id="workers that stay"),
        pytest.param({"num_workers": 0}, passes(16, 0.3), set(), id="no workers: a dataset that is read anew"),
        pytest.param({}, passes(60, 0.9), set(), id="three starts"),
        pytest.param({}, passes(16, 0.05), set(), id="half a second in all"),
        pytest.param({}, passes(40, 0.15), set(), id="a small part"),
        pytest.param({}, passes(16, 0.3)[1:], set(), id="the making of a batch was not seen"),
        pytest.param(
            {},
            [{**each, "samples": 11.0} if each["kind"] == "fetch" else each for each in passes(16, 0.3)],
            set(),
            id="the first batch takes that long",
        ),
        pytest.param(
            {},
            [{**each, "epochs": 2 * each.get("epochs", 0)} for each in passes(16, 0.3)],
            set(),
            id="a validation stands between the passes",
        ),
    ],
)
def test_starts_of_workers_count_by_their_share_of_all_the_time(
    change: dict[str, Any], events: Events, slugs: set[str]
) -> None:
    assert found(profiling.data_wait, [{**LOADER, "num_workers": 8, **change}, *events]) == slugs


def test_a_share_that_straddles_the_bound_is_too_close_to_call() -> None:
    seen = outcome(profiling.data_wait, [LOADER, *steps(14, data=lambda n: 0.06 * (n % 2))])
    assert not weigh.findings([seen], catalog())
    assert "too close to call" in weigh.unsure([seen], catalog())[0].why


def test_a_large_batch_of_cheap_samples_is_the_loaders_own_work() -> None:
    events = steps(40, data=0.006, seconds=0.012)
    assert found(profiling.data_wait, [{**LOADER, "batch_size": 256}, *events]) == set()
    assert found(profiling.data_wait, [LOADER, *events]) == {"input-bound"}


@pytest.mark.parametrize(
    ("workers", "queued", "slugs"),
    [
        pytest.param(0, 0.0, {"input-bound"}, id="a quiet machine"),
        pytest.param(0, 0.009, set(), id="the process waits for a CPU itself"),
        pytest.param(2, 0.009, set(), id="so do its workers"),
        pytest.param(2, 0.001, {"input-bound"}, id="the thread waits for workers, not for a CPU"),
    ],
)
def test_what_others_take_of_the_machine_is_no_wait(workers: int, queued: float, slugs: set[str]) -> None:
    events = steps(40, data=0.006, seconds=0.012, cpu=0.003, queued=queued)
    assert found(profiling.data_wait, [{**LOADER, "num_workers": workers}, *events]) == slugs


@pytest.mark.parametrize(
    ("queued", "samples", "slugs"),
    [
        pytest.param(0.02, 0.008, None, id="busy, and workers make a batch in time"),
        pytest.param(0.02, None, None, id="busy, and workers do not live long enough to tell"),
        pytest.param(0.02, 0.2, {"input-bound"}, id="busy, and they do not"),
        pytest.param(0.0, 0.008, {"input-bound"}, id="quiet"),
    ],
)
def test_workers_of_a_busy_machine_deliver_late(queued: float, samples: float | None, slugs: set[str] | None) -> None:
    fetch = {
        "kind": "fetch",
        "step": 9,
        "workers": 2,
        "worker": 0,
        "batches": 20 if samples else 4,
        "samples": 20 * (samples or 0.008),
        "collate": 0.0,
    }
    events = [{**LOADER, "num_workers": 2}, fetch, *steps(40, data=0.05, cpu=0.02, queued=queued)]
    if slugs is None:
        seen = outcome(profiling.data_wait, events)
        assert isinstance(seen, Inconclusive)
        assert "got a CPU for 50% of the time" in seen.why
    else:
        assert found(profiling.data_wait, events) == slugs


@pytest.mark.parametrize(
    ("drained", "slugs"), [(9, {"input-bound"}), (1, None)], ids=["the device idles", "the device has work"]
)
def test_on_a_device_waiting_counts_when_it_has_run_out_of_work(drained: int, slugs: set[str] | None) -> None:
    arrivals = {"kind": "arrivals", "step": 9, "seen": 10, "drained": drained}
    events = [LOADER, arrivals, *steps(40, data=0.05, allocated=10**9)]
    if slugs is None:
        assert isinstance(outcome(profiling.data_wait, events), Inconclusive)
    else:
        assert found(profiling.data_wait, events) == slugs


@settings(max_examples=40, deadline=None)
@given(st.floats(0.05, 50), st.lists(st.floats(0.0, 0.05), min_size=20, max_size=60))
def test_the_share_does_not_depend_on_the_speed_of_the_machine(speed: float, waits: list[float]) -> None:
    pairs = [(wait, 0.06 + wait) for wait in waits]
    slow = ratio([w for w, _ in pairs], [s for _, s in pairs])
    fast = ratio([w * speed for w, _ in pairs], [s * speed for _, s in pairs])
    assert fast[0] == pytest.approx(slow[0])
    assert fast[1] == pytest.approx(slow[1])
    assert slow[1][0] <= slow[0] <= slow[1][1]


# Computing


@pytest.mark.parametrize(("forward", "verdicts"), [(0.03, {"compute-bound"}), (0.0, set())])
def test_a_step_that_computes_most_of_its_time_has_that_verdict(forward: float, verdicts: set[str]) -> None:
    events = [*steps(3), *steps(37, forward=forward)]
    assert given_verdicts(profiling.compute_share, events) == verdicts
    assert found(profiling.compute_share, events) == set()


@pytest.mark.parametrize(
    ("detector", "events", "why"),
    [
        (profiling.data_wait, steps(8), "7 steps after warm-up"),
        (profiling.data_wait, steps(40, batches=0), "no DataLoader"),
        (profiling.compute_share, steps(40, allocated=10**9), "0 steady steps were timed on the device"),
        (profiling.compute_share, steps(40, forward=0.0), "no forward pass"),
        (growth.memory_growth, steps(20), "17 steps after warm-up"),
        (growth.memory_growth, steps(60, rss=None), "does not tell"),
        (graphs.graph_retained, steps(5), "ten with a graph"),
        (
            precision.scale_collapsing,
            [*steps(9, skipped=1), {"kind": "skip", "step": 0, "scale": 2.0}],
            "20 are needed",
        ),
        (origins.non_finite_origin, steps(9, backward=0.0), "no backward"),
        (updates.gradients_not_zeroed, [], "no backward"),
        (updates.step_missing, [], "no backward"),
    ],
)
def test_what_cannot_be_seen_is_said(detector: Any, events: Events, why: str) -> None:
    seen = outcome(detector, events)
    assert isinstance(seen, Inconclusive)
    assert why in seen.why


# Memory

FEATURES = {
    "kind": "container", "step": 30, "since": 15, "had": 16, "entries": 31, "type": "list",
    "holds": "Tensor(4096, 64)", "bytes": MIB, "holder": "features", "bounded": False, "dataset": False,
    "path": "train.py", "line": 15,
}  # fmt: skip


def followed(of: int = 100, entries: Any = lambda n: n + 1, **each: Any) -> Events:
    """What is told of a container from its naming at step 30 to the end of a run OF so many steps."""
    told = [*range(30, of - 1, 10), of - 1]
    return [{**FEATURES, "had": entries(15), **each, "step": n, "entries": entries(n)} for n in told]


def growing(n: int) -> int:
    return 10**9 + n * MIB


@pytest.mark.parametrize(
    ("resident", "slugs"),
    [
        pytest.param(lambda n: 10**9 + n * MIB, {"memory-growth"}, id="a megabyte per step"),
        pytest.param(lambda n: 10**9 + n * MIB + (n * 7919 % 13) * MIB, {"memory-growth"}, id="with noise"),
        pytest.param(lambda n: growing(n) - max(n - 67, 0) * MIB // 2, {"memory-growth"}, id="freed pages given back"),
        pytest.param(lambda n: 10**9, set(), id="level"),
        pytest.param(lambda n: 10**9 + n * 8192, set(), id="8 KiB per step"),
        pytest.param(lambda n: 10**9 + min(n, 30) * 4 * MIB, set(), id="a cache that fills"),
        pytest.param(lambda n: 10**9 + (n > 50) * 500 * MIB, set(), id="one jump"),
        pytest.param(lambda n: 10**9 + int(n**0.3 * 60 * MIB), set(), id="ever longer batches, ever more rarely"),
        pytest.param(lambda n: 10**9 - n * MIB, set(), id="falling"),
        pytest.param(lambda n: 10**9 + (n % 10) * 8 * MIB, set(), id="a sawtooth"),
    ],
)
def test_memory_is_called_when_it_grows_to_the_end(resident: Any, slugs: set[str]) -> None:
    assert found(growth.memory_growth, [*steps(100, rss=resident, batches=0), *followed()]) == slugs


@pytest.mark.parametrize(
    ("events", "why"),
    [
        pytest.param([], "no container with a name", id="a buffer that was allocated at once"),
        pytest.param(followed(bytes=100), "no container with a name", id="a list of numbers beside a mapped file"),
        pytest.param(followed(entries=lambda n: min(n, 60)), "no container with a name", id="a list that is full"),
        pytest.param(followed(50), "no container with a name", id="a list that was let go"),
        pytest.param(followed(entries=lambda n: 40), "no container with a name", id="a list that stopped growing"),
        pytest.param(followed(type="deque", bounded=True), "it has an end", id="a deque that is not full yet"),
        pytest.param([*followed(), {"kind": "clock", "step": 0}], "no container", id="before the first optimizer step"),
    ],
)
def test_growth_on_a_cpu_that_no_container_accounts_for_is_not_called(events: Events, why: str) -> None:
    seen = outcome(growth.memory_growth, [*events, *steps(100, rss=growing, batches=0)])
    assert isinstance(seen, Inconclusive)
    assert why in seen.why


@pytest.mark.parametrize("memories", [{"rss": growing}, {"allocated": growing}], ids=["CPU", "CUDA"])
@pytest.mark.parametrize(("began", "conclusive"), [(None, False), (80, False), (50, True)])
def test_growth_beside_a_loader_is_called_in_its_second_epoch(
    memories: dict[str, Any], began: int | None, conclusive: bool
) -> None:
    second = [] if began is None else [{"kind": "second-epoch", "step": began}]
    seen = outcome(growth.memory_growth, [*second, *steps(100, **memories), *followed()])
    assert isinstance(seen, Inconclusive) != conclusive
    if isinstance(seen, Inconclusive):
        assert "first epoch" in seen.why


def test_allocated_memory_on_a_device_is_called_without_a_container() -> None:
    assert found(growth.memory_growth, steps(100, allocated=growing, batches=0)) == {"memory-growth"}


def test_growth_on_cuda_beside_ever_longer_steps_may_be_that_of_the_batches() -> None:
    events = steps(100, allocated=growing, batches=0, seconds=lambda n: 0.1 + n / 500)
    seen = outcome(growth.memory_growth, events)
    assert isinstance(seen, Inconclusive)
    assert "batches that grow on purpose" in seen.why
    assert found(growth.memory_growth, [*events, *followed()]) == {"memory-growth"}


def test_memory_growth_names_the_container_and_the_line_that_fills_it() -> None:
    (item,) = evidence(growth.memory_growth, [*steps(100, rss=growing, batches=0), *followed()])
    assert (item.place.path, item.place.line, item.place.container) == ("train.py", 15, "features")
    assert item.value == pytest.approx(1024)
    assert item.fact == (
        "resident memory grows by 1024 KiB per step, 96 MiB over 97 steps, to the end; "
        "list features grew by 1.0 entries per step (Tensor(4096, 64))"
    )


def test_a_dataset_that_caches_its_samples_is_not_called_a_leak() -> None:
    cache = followed(holder="Digits.cache", dataset=True)
    seen = outcome(growth.memory_growth, [*cache, *steps(100, rss=growing)])
    assert isinstance(seen, Inconclusive)
    assert "Digits.cache" in seen.why


@pytest.mark.parametrize(
    ("length", "batch_size", "slugs"),
    [
        pytest.param(5, 4, {"memory-growth"}, id="more entries than samples"),
        pytest.param(20, 4, set(), id="a cache that may be filling"),
        pytest.param(5, None, set(), id="batches of unknown sizes"),
    ],
)
def test_a_dataset_that_keeps_more_than_its_samples_leaks(length: int, batch_size: int | None, slugs: set[str]) -> None:
    loader = {"kind": "loader", "step": 0, "length": length, "batch_size": batch_size}
    second = {"kind": "second-epoch", "step": 5}
    cache = followed(holder="Digits.cache", dataset=True)
    assert found(growth.memory_growth, [loader, second, *cache, *steps(100, rss=growing)]) == slugs


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2 * MIB))
def test_noise_of_an_allocator_is_never_growth(seed: int, size: int) -> None:
    def resident(n: int) -> int:
        return 10**9 + (n * 2654435761 + seed) % 2**32 * size // 2**32

    assert found(growth.memory_growth, steps(80, rss=resident)) == set()


GRAPHS = {
    "kind": "graphs", "step": 39, "alive": 38, "seen": 40, "since": 0, "lately": 40, "holder": "history", "bounded": False, "path": "train.py",
    "line": 18, "kept": "loss", "shape": [], "nodes": 11, "bytes": 4,
}  # fmt: skip


EPOCH = [{**GRAPHS, "alive": alive, "seen": 60, "since": 10, "lately": alive + 2} for alive in (8, 18, 38)]


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([GRAPHS], {"graph-retained"}, id="a list of losses"),
        pytest.param([{**GRAPHS, "holder": None}], {"graph-retained"}, id="held by something without a name"),
        pytest.param([{**GRAPHS, "bounded": True}], set(), id="a deque with an end"),
        pytest.param([{**GRAPHS, "alive": 7}], set(), id="a window of seven steps"),
        pytest.param(
            [{**GRAPHS, "alive": 18, "seen": 20, "lately": 20}, GRAPHS, {**GRAPHS, "seen": 80, "since": 40}],
            set(),
            id="a window by hand",
        ),
        pytest.param(
            [{**GRAPHS, "alive": alive, "seen": 90 + alive, "since": 200, "lately": alive + 1} for alive in (8, 16)],
            {"graph-retained"},
            id="from a later step on",
        ),
        pytest.param(
            [
                {**GRAPHS, "alive": alive, "seen": 90 + alive, "since": 200, "lately": alive + 1, "again": 60}
                for alive in (8, 16)
            ],
            set(),
            id="from a later step on, where all before were gone through again",
        ),
        pytest.param([{**GRAPHS, "alive": 8, "seen": 98, "since": 200, "lately": 9}], set(), id="the last eight steps"),
        pytest.param([*EPOCH, {**GRAPHS, "alive": 0, "seen": 90}], set(), id="piled up and let go once"),
        pytest.param(
            [*EPOCH, *({**each, "since": 100} for each in EPOCH), {**GRAPHS, "alive": 0, "seen": 90}],
            {"graph-retained"},
            id="piled up in every epoch",
        ),
        pytest.param(
            [*({**EPOCH[0], "first": 2, "since": since} for since in (10, 40)), {**GRAPHS, "alive": 0, "seen": 90}],
            {"graph-retained"},
            id="in short epochs",
        ),
        pytest.param(
            [*EPOCH, *({**each, "since": 100} for each in EPOCH), {**GRAPHS, "alive": 0, "seen": 90, "again": 3}],
            set(),
            id="until a later backward",
        ),
        pytest.param(
            [{**GRAPHS, "alive": 0}, {**GRAPHS, "kind": "inner-graphs", "kept": "within"}],
            {"graph-retained"},
            id="features from within a pass",
        ),
        pytest.param([{**GRAPHS, "alive": 0}], set(), id="nothing kept"),
    ],
)
def test_graphs_are_called_when_most_of_them_outlive_their_step(events: Events, slugs: set[str]) -> None:
    assert found(graphs.graph_retained, [*steps(40), *events]) == slugs


@pytest.mark.parametrize("boundary", ["forward", "backward"])
def test_graphs_before_the_first_optimizer_step_may_be_parts_of_one_step(boundary: str) -> None:
    seen = outcome(graphs.graph_retained, [*steps(40, boundary=boundary), GRAPHS])
    assert isinstance(seen, Inconclusive)
    assert "no optimizer has stepped" in seen.why


def test_a_job_that_only_evaluates_is_not_asked_for_more_steps() -> None:
    seen = outcome(graphs.graph_retained, steps(200, backward=0.0))
    assert isinstance(seen, Inconclusive)
    assert seen.why == "no backward pass was seen"


def test_graphs_counted_before_the_steps_were_numbered_anew_do_not_count() -> None:
    events = [*steps(40, boundary="forward"), GRAPHS, {"kind": "clock", "step": 0, "boundary": "optimizer"}, *steps(40)]
    assert isinstance(outcome(graphs.graph_retained, events), Inconclusive)
    assert found(graphs.graph_retained, [*events, {**GRAPHS, "alive": 0}]) == set()
    assert found(graphs.graph_retained, [*events, GRAPHS]) == {"graph-retained"}


@pytest.mark.parametrize(
    ("kept", "size", "words"),
    [("loss", 4, "no activations"), ("output", 65536, "64 KiB of tensors"), ("sum", 4, "a term of a sum")],
)
def test_what_each_graph_keeps_is_measured(kept: str, size: int, words: str) -> None:
    (item,) = evidence(graphs.graph_retained, [{**GRAPHS, "kept": kept, "bytes": size}])
    assert "held by history" in item.fact
    assert words in item.fact


# The loss scale


def skips(*numbers: int) -> Events:
    """Sixty steps of which those were skipped, the scale halved each time."""
    events = steps(60, skipped=lambda n: int(n in numbers))
    seen = {"kind": "skip", "path": "t.py", "line": 9, "bad": 2, "of": 4, "nearest": "out.bias"}
    return events + [
        {**seen, "step": n, "total": before + 1, "scale": 65536 / 2**before} for before, n in enumerate(numbers)
    ]


@pytest.mark.parametrize(
    ("numbers", "slugs"),
    [
        pytest.param([], set(), id="never"),
        pytest.param([0, 1], set(), id="the search for a scale"),
        pytest.param(range(16), set(), id="a long search"),
        pytest.param([0, 2, 40], set(), id="one more much later"),
        pytest.param([20, 40], set(), id="two"),
        pytest.param([20, 30, 40, 50], {"scale-collapsing"}, id="one in fifteen"),
        pytest.param(range(60), {"scale-collapsing"}, id="every step"),
        pytest.param([0, 1, *range(7, 60, 8)], {"scale-collapsing"}, id="one in eight after a search"),
    ],
)
def test_skipped_steps_are_called_beyond_the_search(numbers: list[int], slugs: set[str]) -> None:
    assert found(precision.scale_collapsing, skips(*numbers)) == slugs


def test_a_collapsing_scale_tells_its_history_and_the_first_parameter() -> None:
    (item,) = evidence(precision.scale_collapsing, skips(10, 20, 30))
    assert (item.place.step, item.place.module) == (10, "out.bias")
    assert "3 of 60 steps" in item.fact
    assert "from 65536 (step 10) to 16384 (step 30)" in item.fact


CLIP = {"kind": "clip-scaled", "call": "clip_grad_norm_", "norm": 2048.0, "path": "t.py", "line": 5, "scale": 1024.0}


def test_clips_of_scaled_gradients_are_counted_once() -> None:
    events = [{**CLIP, "step": 3, "times": 1}, {**CLIP, "step": 9, "times": 7}]
    (item,) = evidence(precision.clip_before_unscale, events)
    assert (item.place.step, item.place.line) == (3, 5)
    assert "a norm of 2.05e+03, which is 2 times the scale; 7 times by step 9" in item.fact


# Gradients

ORIGIN = {
    "kind": "non-finite", "step": 6, "seen": "loss", "stage": "forward", "op": "log", "value": "NaN",
    "module": "blocks.2", "root": "Net", "class": "Block", "path": "net.py", "line": 8,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "the loss is not finite at step 6: log gave NaN in blocks.2 of Net, from inputs"),
        ({"autocast": "float16", "persists": False}, "without autocast (float16) it is finite"),
        ({"autocast": "float16", "persists": True}, "without autocast (float16) it gives the same"),
        ({"stage": "input"}, "the input of Net was not finite already: the batch itself"),
        ({"stage": "parameter", "parameter": "out.weight"}, "the parameter out.weight was not finite before"),
        ({"stage": "loss", "chain": ["Log", "Exp"]}, "arises in the loss computed from it (Log, of Exp)"),
        ({"stage": "unknown", "why": "a reason"}, "could not be traced (a reason)"),
        (
            {"seen": "gradient", "bad": 2, "of": 4, "nearest": "a.w", "stage": "backward", "op": "Sqrt"},
            "gradient of 2 of 4 parameters (nearest to the loss: a.w) is not finite at step 6: the derivative of Sqrt",
        ),
        (
            {"seen": "late", "at": 5, "stage": "unknown", "why": "late"},
            "the loss or a gradient is not finite at step 5",
        ),
    ],
)
def test_an_origin_is_told_in_words(change: dict[str, Any], words: str) -> None:
    (item,) = evidence(origins.non_finite_origin, [*steps(9), {**ORIGIN, **change}])
    assert words in item.fact


def test_a_batch_that_holds_nan_blames_no_module() -> None:
    (item,) = evidence(origins.non_finite_origin, [*steps(9), {**ORIGIN, "stage": "input"}])
    assert item.place.module is None


@pytest.mark.parametrize(("running", "slugs"), [(2, set()), (3, {"gradients-not-zeroed"})])
def test_gradients_are_called_carried_after_three_steps_in_a_row(running: int, slugs: set[str]) -> None:
    event = {"kind": "carried", "step": 4, "optimizer": "SGD", "running": running, "path": "t.py", "line": 3}
    assert found(updates.gradients_not_zeroed, [*steps(9), event]) == slugs


def test_of_equally_long_chains_of_carried_gradients_the_first_is_told() -> None:
    chain = {"kind": "carried", "optimizer": "SGD", "running": 10, "path": "t.py", "line": 3}
    (item,) = evidence(updates.gradients_not_zeroed, [*steps(120), {**chain, "step": 10}, {**chain, "step": 107}])
    assert item.place.step == 10


LEDGER = {
    "kind": "updates", "step": 0, "optimizer": "SGD", "built": "t.py:4", "backwards": 30, "steps": 0, "moved": False,
    "path": "t.py", "line": 8, "last": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "slugs"),
    [
        ({}, {"step-missing"}),
        ({"steps": 1}, set()),
        ({"moved": True}, set()),
        ({"backwards": 9}, set()),
        ({"last": False}, set()),
        ({"last": False, "backwards": 1000}, {"step-missing"}),
    ],
)
def test_a_step_is_missing_when_ten_backward_passes_move_nothing(change: dict[str, Any], slugs: set[str]) -> None:
    assert found(updates.step_missing, [*steps(9), {**LEDGER, **change}]) == slugs


def test_gradients_of_an_input_excuse_a_missing_step_only_when_nothing_steps() -> None:
    attacked, other = {**LEDGER, "beside": True}, {**LEDGER, "built": "t.py:5"}
    seen = outcome(updates.step_missing, [*steps(9), attacked, other])
    assert isinstance(seen, Inconclusive)
    assert "an input got gradients" in seen.why
    assert found(updates.step_missing, [*steps(9), attacked, {**other, "steps": 5}]) == {"step-missing"}


def test_only_the_last_word_on_an_optimizer_counts() -> None:
    events = [*steps(9), {**LEDGER, "backwards": 1000, "last": False}, {**LEDGER, "backwards": 1000, "steps": 1}]
    assert found(updates.step_missing, events) == set()


# All of them

READINGS = tuple(each for each in detectors("readings") if each.name.startswith("run/"))


@pytest.mark.parametrize("detector", READINGS, ids=lambda each: each.name)
def test_a_healthy_record_shows_nothing(detector: Any) -> None:
    ends = [{**LEDGER, "steps": 100, "moved": True}, {**GRAPHS, "alive": 0}]
    assert found(detector, [LOADER, *steps(100, data=0.005), *ends]) == set()
