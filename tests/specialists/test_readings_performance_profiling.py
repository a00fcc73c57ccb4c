"""What readings say of steps that grow, of aids that stay on, and of what is built again and again."""

from __future__ import annotations

from typing import Any

import pytest
from records import LOADER, Events, evidence, found, given_verdicts, outcome, steps

from torchtriage.core.evidence import Inconclusive
from torchtriage.specialists.performance_profiling.readings.aids import debug_left_on
from torchtriage.specialists.performance_profiling.readings.building import built_in_loop
from torchtriage.specialists.performance_profiling.readings.fetching import worker_count
from torchtriage.specialists.performance_profiling.readings.recompiles import recompiling
from torchtriage.specialists.performance_profiling.readings.shares import data_wait, loop_share
from torchtriage.specialists.performance_profiling.readings.slowdown import progressive_slowdown

# Steps that grow


def work(each: Any = lambda n: 100, **fields: Any) -> Events:
    return [
        {"kind": "work", "step": n + 8, "since": n, "inputs": each(n), "batches": 0, "parameters": 9, "trainable": 9}
        | {name: value(n) for name, value in fields.items()}
        for n in range(0, 120, 8)
    ]


def growing(share: Any, **fields: Any) -> Events:
    """120 steps of 100 ms, of which SHARE(n) ms more are computed in no phase."""
    return steps(120, seconds=lambda n: 0.1 + share(n) / 1e3, cpu=lambda n: 0.09 + share(n) / 1e3, probes=0.0, **fields)


def alike(n: int) -> float:
    return 1 + n / 60


WAITS = steps(
    120,
    seconds=lambda n: 0.1 + n / 1e3,
    cpu=0.05,
    data=lambda n: 0.01 + n / 1e3,
)
BACKWARDS = steps(120, seconds=lambda n: 0.1 + n / 1e3, cpu=0.05, backward=lambda n: 0.04 + n / 1e3)
TWO = {"kind": "start", "step": 0, "rank": 0, "world_size": 2}
BUSY_AT_FIRST = [
    {**row, "seconds": row["seconds"] * (3 if row["step"] < 60 and row["step"] % 5 else 1)}
    for row in growing(lambda n: n)
]
SLOW_MACHINE = steps(
    120,
    cpu=0.05,
    **{name: lambda n, was=was: was * alike(n) for name, was in (("seconds", 0.1), ("data", 0.01))},
    **{name: lambda n, was=was: was * alike(n) for name, was in (("forward", 0.03), ("backward", 0.04))},
    optimizer=lambda n: 0.01 * alike(n),
)


@pytest.mark.parametrize(
    ("events", "slugs"),
    [
        pytest.param([*growing(lambda n: n), *work()], {"progressive-slowdown"}, id="a millisecond per step"),
        pytest.param(
            [*growing(lambda n: n), *({**each, "step": 2 * each["step"]} for each in work() if each["since"] < 61)],
            {"progressive-slowdown"},
            id="wide blocks of work",
        ),
        pytest.param([*growing(lambda n: n + 7 * (n * 7919 % 13)), *work()], {"progressive-slowdown"}, id="with noise"),
        pytest.param(
            [*growing(lambda n: n + (n % 10 == 9) * 900), *work()], {"progressive-slowdown"}, id="with checkpoints"
        ),
        pytest.param([*BUSY_AT_FIRST, *work()], {"progressive-slowdown"}, id="other processes in the first half"),
        pytest.param([*growing(lambda n: n + 40 * (n % 40 < 20)), *work()], {"progressive-slowdown"}, id="in bursts"),
        pytest.param([*growing(lambda n: (n % 10 == 9) * 900), *work()], set(), id="checkpoints alone"),
        pytest.param([*growing(lambda n: (n > 60) * 100), *work()], set(), id="a stage that is dearer"),
        pytest.param([*growing(lambda n: min(n, 60) * 2), *work()], set(), id="a cache that fills"),
        pytest.param([*growing(lambda n: 60 - 60 * 0.9**n), *work()], set(), id="a processor that gets hot"),
        pytest.param([*growing(lambda n: n / 4), *work()], set(), id="by less than a third"),
        pytest.param([*growing(lambda n: 150 - n), *work()], set(), id="warm-up"),
        pytest.param([*growing(lambda n: 50 * (n * 7919 % 31)), *work()], set(), id="noise alone"),
        pytest.param([*growing(lambda n: n), *work(lambda n: 100 + n)], set(), id="a curriculum of longer inputs"),
        pytest.param([*growing(lambda n: n), *work(batches=lambda n: 9 + n)], set(), id="larger batches"),
        pytest.param([*growing(lambda n: n), *work(parameters=lambda n: 9 + n)], set(), id="a model that grows"),
        pytest.param([*growing(lambda n: n), *work(trainable=lambda n: 9 + n)], set(), id="layers are thawed"),
        pytest.param([*growing(lambda n: n, forwards=lambda n: 10 + n), *work()], set(), id="longer episodes"),
        pytest.param(
            [*growing(lambda n: n), *work(), {"kind": "hooks", "step": 99, "alive": 99}], set(), id="hooks pile up"
        ),
        pytest.param([*growing(lambda n: n)[:50], *work()], set(), id="50 steps"),
        pytest.param([*WAITS, *work()], {"progressive-slowdown"}, id="waiting grows, the rest stays"),
        pytest.param([*BACKWARDS, *work()], {"progressive-slowdown"}, id="backward passes grow"),
        pytest.param(
            [{**row, "queued": row["step"] / 1e3} for row in BACKWARDS] + work(),
            set(),
            id="the wait for a free CPU grows",
        ),
        pytest.param(
            [{**row, "queued": 0.05} for row in BACKWARDS] + work(), {"progressive-slowdown"}, id="it stays as it was"
        ),
        pytest.param([TWO, *BACKWARDS, *work()], set(), id="backward passes, in which another rank is awaited"),
        pytest.param(
            [TWO, *growing(lambda n: n), *work()], {"progressive-slowdown"}, id="one of two ranks, its own work"
        ),
    ],
)
def test_a_step_that_grows_with_the_same_work_is_called(events: Events, slugs: set[str]) -> None:
    assert not isinstance(outcome(progressive_slowdown, events), Inconclusive)
    assert found(progressive_slowdown, events) == slugs


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([*SLOW_MACHINE, *work()], "every part of it alike"),
        ([{**row, "cpu": row["seconds"] * 0.9} for row in SLOW_MACHINE] + work(), "every part of it alike"),
        (growing(lambda n: n), "how much goes into a step"),
    ],
    ids=["a machine that slows down", "a processor that gets ever hotter", "no root module"],
)
def test_growth_that_may_have_another_cause_is_said(events: Events, why: str) -> None:
    seen = outcome(progressive_slowdown, events)
    assert isinstance(seen, Inconclusive)
    assert why in seen.why


def stack(count: int, of: int = 100, phase: str = "other", since: int = 90) -> dict[str, Any]:
    lines = [[phase, "train.py", 7, "metric", False, count], [phase, "train.py", 9, "train", False, of - count]]
    return {"kind": "stacks", "step": since + 9, "since": since, "samples": of, "parts": {phase: of}, "lines": lines}


def on_a_busy_machine(n: int) -> float:
    """How many times as long all takes in step N: ever less."""
    return 3 - n / 60


BUSY_LESS_AND_LESS = steps(
    120,
    seconds=lambda n: (0.1 + n / 1e3) * on_a_busy_machine(n),
    cpu=lambda n: 0.1 + n / 2e3,
    data=0.0,
    **{name: lambda n: 0.03 * on_a_busy_machine(n) for name in ("forward", "backward")},
    optimizer=0.01,
)
BEATS = [
    {**row, "seconds": row["seconds"] + 0.4 * (row["step"] // 13 % 3 == 0 and row["step"] % 3 > 0)}
    for row in growing(lambda n: n, forward=0.02, backward=0.03)
]


@pytest.mark.parametrize(
    ("events", "grows"),
    [
        pytest.param(BUSY_LESS_AND_LESS, True, id="a machine that gets free"),
        pytest.param([{**row, "cpu": 0.1} for row in BUSY_LESS_AND_LESS], False, id="and a step that does not grow"),
        pytest.param([{**row, "cpu": 0.1} for row in BEATS], True, id="bursts of other processes"),
    ],
)
def test_other_processes_do_not_hide_a_step_that_grows(events: Events, grows: bool) -> None:
    assert found(progressive_slowdown, [*events, *work()]) == ({"progressive-slowdown"} if grows else set())


def calls(*lines: tuple[int, int, int, str]) -> dict[str, Any]:
    """A look at 100 samples of what is in no phase, spread over lines, with those that call: their number, depth,
    samples and phase.
    """
    each = [[phase, "train.py", number, "f", False, depth, count] for number, depth, count, phase in lines]
    return {**stack(0, since=90), "lines": [["other", "train.py", 90 + n, "g", False, 25] for n in range(4)],
            "calls": each, "loop": [["train.py", 60]]}  # fmt: skip


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (calls((60, 0, 100, "other"), (30, 1, 80, "other"), (31, 1, 10, "other"), (7, 2, 60, "other")), [7, 30]),
        (calls((30, 0, 90, "other"), (30, 0, 40, "forward"), (7, 1, 60, "other")), [7]),
        (calls((30, 0, 45, "other"), (31, 0, 40, "other")), [None]),
    ],
    ids=["the outermost below the loop, and the innermost", "not what runs the model too", "spread"],
)
def test_the_lines_that_call_what_grows_are_named(event: dict[str, Any], lines: list[int | None]) -> None:
    seen = evidence(progressive_slowdown, [*growing(lambda n: n), *work(), event])
    assert [item.place.line for item in seen] == lines


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (stack(80), 7),
        (stack(51, of=140), 9),
        (stack(10, of=19), None),
        (stack(80, phase="data"), None),
        (stack(80, since=3), None),
    ],
    ids=["most samples", "another line", "few samples", "another phase", "too early"],
)
def test_the_growing_phase_and_its_line_are_named(event: dict[str, Any], line: int | None) -> None:
    (item,) = evidence(progressive_slowdown, [*growing(lambda n: n), *work(), event])
    assert item.place.line == line
    said = (
        "a step takes 102.5 ms of CPU time at first and 200.0 ms at the end of 117 steps, and it is what is in no phase"
    )
    assert item.fact.startswith(said)
    assert ("samples" in item.fact) == (line is not None)


# What is built again and again


def built(what: str, name: str = "Adam", **fields: Any) -> Events:
    """One line that built 40 times in 40 steps, with what counts for every kind."""
    told = {
        "kind": "built", "step": 40, "what": what, "name": name, "path": "train.py", "line": 5, "times": 40,
        "steps": 40, "over": 40, "since": 0, "elapsed": 4.0, "seconds": 0.4, "module": "0.weight",
        "same": 40, "kept": 40, "abandoned": 0, "beside": 40, "restored": 0,
    }  # fmt: skip
    return [{**told, **fields}]


@pytest.mark.parametrize(
    ("events", "called"),
    [
        pytest.param(built("optimizer"), True, id="the same parameters and a state"),
        pytest.param(built("optimizer", steps=20, over=40), False, id="every second step: an epoch of two"),
        pytest.param(built("optimizer", steps=12, times=12, over=12), False, id="twelve steps"),
        pytest.param(built("optimizer", kept=0), False, id="SGD without momentum"),
        pytest.param(built("optimizer", same=0), False, id="other parameters each time: copies, latents"),
        pytest.param(built("optimizer", module=None), False, id="parameters of no module: an attack"),
        pytest.param(built("optimizer", restored=40), False, id="weights are restored: one training for each item"),
        pytest.param(built("optimizer", name="LBFGS"), False, id="LBFGS for each batch"),
        pytest.param(built("loader"), True, id="a loader beside another"),
        pytest.param(built("loader", beside=0, abandoned=39), True, id="a loader that is given up"),
        pytest.param(built("loader", beside=0), False, id="a loader for each epoch of one batch"),
        pytest.param(built("compiled"), True, id="the same module is compiled"),
        pytest.param(built("compiled", same=0), False, id="another module is compiled each time"),
        pytest.param(built("moved"), True, id="moved to where it is, a tenth of the time"),
        pytest.param(built("moved", seconds=0.1), False, id="moved to where it is, at no cost"),
        pytest.param(built("moved", same=0), False, id="brought back to the device"),
        pytest.param([*built("optimizer"), *built("optimizer", steps=41, over=900)], False, id="at first only"),
    ],
)
def test_what_is_built_in_every_step_and_loses_by_it_is_called(events: Events, called: bool) -> None:
    assert found(built_in_loop, events) == ({"built-in-loop"} if called else set())


def test_the_line_and_what_is_lost_are_named() -> None:
    (item,) = evidence(built_in_loop, built("optimizer"))
    assert (item.place.path, item.place.line) == ("train.py", 5)
    assert item.fact == "Adam over the same parameters is built anew, and forgets its state, in 40 of 40 steps"


def test_the_line_that_asks_for_what_is_built_is_named_too() -> None:
    seen = evidence(built_in_loop, built("optimizer", calls=[["train.py", 5], ["train.py", 21], ["train.py", 30]]))
    assert [item.place.line for item in seen] == [5, 21]


# Aids that stay on


def aid(on: int, of: int, name: str = "anomaly mode") -> dict[str, Any]:
    return {"kind": "aid", "step": of, "aid": name, "on": on, "of": of, "path": "train.py", "line": 3}


BLOCKING = {"kind": "start", "step": 0, "environment": {"CUDA_LAUNCH_BLOCKING": "1"}}
NAN = {"kind": "non-finite", "step": 39, "at": 39, "seen": "loss", "stage": "input"}


@pytest.mark.parametrize(
    ("events", "called"),
    [
        pytest.param([aid(60, 60)], True, id="anomaly mode in all"),
        pytest.param([aid(50, 50), aid(60, 200)], False, id="anomaly mode at first"),
        pytest.param([aid(30, 30)], False, id="thirty backward passes"),
        pytest.param([aid(60, 60), NAN], False, id="it was needed"),
        pytest.param([aid(60, 60), {"kind": "error", "step": 60, "error": "RuntimeError"}], False, id="it found it"),
        pytest.param([aid(60, 60, "a profiler")], False, id="a job to be profiled"),
        pytest.param([aid(900, 900, "a profiler")], True, id="a profiler without an end"),
        pytest.param([aid(30, 900, "a profiler")], False, id="a schedule"),
        pytest.param([BLOCKING, *steps(60, allocated=10**9)], True, id="blocking launches"),
        pytest.param([BLOCKING, *steps(60)], False, id="blocking launches without a device"),
        pytest.param([BLOCKING, *steps(9, allocated=10**9)], False, id="blocking launches to find an error"),
        pytest.param(
            [{**BLOCKING, "environment": {"CUDA_LAUNCH_BLOCKING": "0"}}, *steps(60, allocated=10**9)],
            False,
            id="launches that do not block",
        ),
    ],
)
def test_an_aid_that_is_on_all_the_time_and_finds_nothing_is_called(events: Events, called: bool) -> None:
    assert found(debug_left_on, events) == ({"debug-left-on"} if called else set())


def test_the_line_that_calls_what_switches_an_aid_on_is_named_too() -> None:
    seen = evidence(debug_left_on, [{**aid(60, 60), "calls": [["train.py", 21]]}])
    assert [item.place.line for item in seen] == [3, 21]


# Compiled again and again


def compiled(compiles: int, repeated: int, guard: str = "self.calls == 7", given_up: bool = False) -> dict[str, Any]:
    return {
        "kind": "recompiles", "step": 40, "compiles": compiles, "repeated": repeated, "seconds": 9.0, "name": "forward",
        "given_up": given_up, "guard": guard, "path": "model.py", "line": 12,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("events", "called"),
    [
        pytest.param([compiled(8, 7, given_up=True)], True, id="given up"),
        pytest.param([compiled(7, 6)], True, id="one guard fails again and again"),
        pytest.param([compiled(4, 2, "GLOBAL_STATE changed: grad_mode")], False, id="modes and a size"),
        pytest.param([compiled(7, 2)], False, id="guards of many kinds"),
        pytest.param([compiled(6, 5, "tensor 'x' size mismatch at index 1")], False, id="five buckets of lengths"),
        pytest.param([compiled(8, 7, "tensor 'x' size mismatch", given_up=True)], True, id="too many lengths"),
        pytest.param([compiled(8, 0, "", given_up=True)], True, id="given up by a torch that names no guard"),
        pytest.param([compiled(4, 3), compiled(8, 7, given_up=True)], True, id="the last account counts"),
        pytest.param(steps(40), False, id="nothing is compiled"),
    ],
)
def test_recompiling_is_called_when_one_guard_keeps_failing(events: Events, called: bool) -> None:
    assert found(recompiling, events) == ({"recompiling"} if called else set())


def test_the_guard_and_the_outcome_are_named() -> None:
    (item,) = evidence(recompiling, [compiled(8, 7, given_up=True)])
    assert item.value == 8
    assert item.fact == (
        "forward was compiled 8 times (9.0 s), 7 times because `self.calls == 7` or its like no longer held; "
        "then torch gave it up: it runs uncompiled"
    )


def test_what_changes_and_who_asks_for_the_compiler_is_named_beside_the_guard() -> None:
    told = {"changed": [["model.py", 12], ["train.py", 30]], "compiled": ["train.py", 20]}
    seen = evidence(recompiling, [{**compiled(8, 7, given_up=True), **told}])
    assert [(item.place.path, item.place.line) for item in seen] == [
        ("model.py", 12), ("train.py", 30), ("train.py", 20),
    ]  # fmt: skip


# Who makes the batches, and where


def fetched(workers: int = 0, worker: int | None = None, batches: int = 10, samples: float = 0.4) -> dict[str, Any]:
    told = {"kind": "fetch", "batches": batches, "samples": samples, "collate": 0.1, "workers": workers}
    return told if worker is None else {**told, "worker": worker}


@pytest.mark.parametrize(
    ("event", "line", "others"),
    [
        (stack(90, phase="data"), 7, []),
        ({**stack(90, phase="data"), "lines": [["data", "sample.py", 3, "decode", True, 90]]}, 3, [7]),
        ({**stack(90, phase="data"), "lines": [["data", "sample.py", 3, "decode", True, 40]]}, 7, [3]),
        ({**stack(90, phase="data"), "lines": [["data", "sample.py", 3, "decode", True, 9]]}, 7, []),
    ],
    ids=["the line that asks for a batch", "the line that makes a sample", "no line for itself", "no line"],
)
def test_waiting_names_the_line_of_the_samples_where_one_takes_most(
    event: dict[str, Any], line: int, others: list[int]
) -> None:
    item, *beside = evidence(data_wait, [LOADER, *steps(40, data=0.05), fetched(), event])
    assert (item.place.line, [each.place.line for each in beside]) == (line, others)
    assert "making a batch takes 40.0 ms for its samples and 10.0 ms in collate_fn" in item.fact
    assert ("sample.py:3 (decode)" in item.fact) == (line == 3)


def test_the_line_of_the_datasets_own_is_named_beside_what_it_calls_and_the_loader() -> None:
    standing = ["data", "sample.py", 3, "decode", True]
    called = [
        *[[*standing, 3, 90]],
        ["data", "data.py", 8, "__getitem__", True, 2, 99],
        ["data", "train.py", 9, "fit", False, 1, 100],
    ]
    look = {**stack(90, phase="data"), "lines": [[*standing, 90]], "calls": called, "loop": []}
    seen = evidence(data_wait, [{**LOADER, "built": ["train.py", 2]}, *steps(40, data=0.05), fetched(), look])
    assert [(each.place.path, each.place.line) for each in seen] == [
        ("sample.py", 3), ("data.py", 8), ("train.py", 7), ("train.py", 2),
    ]  # fmt: skip


def test_a_function_that_collates_is_named_where_it_takes_longer_than_the_samples() -> None:
    told = {**fetched(samples=0.4), "collate": 0.9}
    (item,) = evidence(data_wait, [{**LOADER, "collate": ["collate.py", 5]}, *steps(40, data=0.05), told])
    assert (item.place.path, item.place.line) == ("collate.py", 5)


def test_the_line_of_a_worker_is_named_from_the_samples_in_which_it_makes_batches() -> None:
    lines = [["data", "train.py", 30, "main", False, 60], ["data", "sample.py", 3, "decode", True, 40]]
    look = {"kind": "making", "samples": 100, "parts": {"data": 100}, "lines": lines, "calls": []}
    told = [fetched(2, 0), fetched(2, 1), look]
    item, *_ = evidence(data_wait, [{**LOADER, "num_workers": 2}, *steps(40, data=0.05), *told])
    assert item.place.line == 3


def test_workers_add_up_by_their_last_sums() -> None:
    told = [fetched(2, 0, 8), fetched(2, 0, 40, 4.0), fetched(2, 1, 40, 8.0), fetched(0)]
    (item,) = evidence(data_wait, [{**LOADER, "num_workers": 2}, *steps(40, data=0.05), *told])
    assert item.fact.endswith("takes 150.0 ms for its samples and 2.5 ms in collate_fn in each of 2 workers")


@pytest.mark.parametrize(
    ("workers", "cores", "data", "wanted"),
    [
        pytest.param(0, 8, 0.05, 1, id="none, and a batch takes as long as the rest"),
        pytest.param(0, 8, 0.08, 3, id="none, and a batch takes longer"),
        pytest.param(4, 8, 0.08, None, id="there are workers"),
        pytest.param(0, 2, 0.08, 2, id="as many as there are cores"),
        pytest.param(0, 1, 0.08, None, id="one core"),
        pytest.param(0, 8, 0.01, None, id="the step does not wait"),
    ],
)
def test_as_many_workers_are_advised_as_keep_up(workers: int, cores: int, data: float, wanted: int | None) -> None:
    start = {"kind": "start", "step": 0, "cpus": cores}
    told = [fetched(workers, 0 if workers else None)]
    seen = evidence(worker_count, [start, {**LOADER, "num_workers": workers}, *steps(40, data=data), *told])
    assert [item.value for item in seen] == ([wanted] if wanted else [])


def test_code_around_the_model_that_takes_most_of_a_step_is_a_verdict_with_its_line() -> None:
    events = [*steps(40, forward=0.01, backward=0.02, optimizer=0.0), stack(90)]
    assert given_verdicts(loop_share, events) == {"loop-bound"}
    assert given_verdicts(loop_share, [*steps(40), stack(90)]) == set()
    assert given_verdicts(loop_share, events[:-1]) == set()
    (item,) = evidence(loop_share, events)
    assert item.place.line == 7
    assert item.fact == (
        "60% of a step is in no phase: not data, model or optimizer (37 steps); "
        "90% of 100 samples of that stand at train.py:7 (metric)"
    )
