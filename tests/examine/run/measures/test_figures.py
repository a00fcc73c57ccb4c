from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.examine.run.job.events import Step
from torchtriage.examine.run.job.watch.governor import FIRST
from torchtriage.examine.run.measures.figures import measurements, overhead, shares, step_time
from torchtriage.examine.run.record import RankRecord, RunRecord

Event = dict[str, Any]
NAMES = {
    "setup", "steps", "step_time", "shares", "memory", "loss", "grad_norm", "scale", "timeline", "ranks", "overhead",
    "overhead_later", "stacks", "lines", "unexplained", "training",
}  # fmt: skip
SHARES = {"data", "transfer", "forward", "backward", "optimizer", "communication", "idle", "other"}


def step(number: int, **fields: Any) -> Event:
    return {"kind": "step", "step": number, "seconds": 1.0, "probes": 0.0, "batches": 1, "forwards": 1, **fields}


def run(*events: Event) -> RunRecord:
    return RunRecord((RankRecord(0, events),))


def test_the_names_are_those_of_the_interface() -> None:
    measured = measurements(run(*(step(n, data=0.2, forward=0.3, loss=1.0) for n in range(5))))

    assert measured.keys() == NAMES
    assert measured["shares"].keys() == SHARES
    assert measured["step_time"].keys() == {"median", "p10", "p90", "interval"}


def test_the_timeline_has_columns_of_one_length_whose_phases_fill_the_step() -> None:
    rows = [step(n, seconds=1.1, probes=0.1, data=0.2, forward=0.3, rss=n * 100) for n in range(1, 1001)]
    drawn = measurements(run(step(0), *rows))["timeline"]

    assert {len(column) for column in drawn.values()} == {200}
    assert (drawn["step"][0], drawn["step"][-1], drawn["rss"][-1]) == (3, 1000, 100_000)
    assert sum(drawn[name][7] for name in SHARES) == pytest.approx(1.0)


def test_the_lines_are_those_of_the_look_with_the_most_samples() -> None:
    looks = [
        {"kind": "stacks", "since": 9, "samples": 8, "lines": [["other", "train.py", 7, "metric", False, 6]]},
        {"kind": "stacks", "since": 90, "samples": 2, "lines": [["data", "train.py", 8, "load", True, 2]]},
    ]
    line = {"phase": "other", "path": "train.py", "line": 7, "function": "metric", "share": 0.75}

    assert measurements(run(step(0), *looks))["stacks"] == {"since": 9, "samples": 8, "lines": [line]}
    assert measurements(run(step(0)))["stacks"] is None


def test_a_run_without_a_record_has_no_figures() -> None:
    assert measurements(RunRecord(())) == {}


def test_a_record_without_a_steady_step_has_no_times() -> None:
    measured = measurements(run(step(0)))

    assert (measured["steps"], measured["step_time"], measured["shares"]) == (1, None, None)


def test_shares_are_over_all_steady_steps_without_the_probes() -> None:
    slow_start = step(0, seconds=100.0, data=99.0)
    rows = [step(n, seconds=1.1, probes=0.1, data=0.2, forward=0.3, backward=0.4, optimizer=0.05) for n in range(1, 5)]
    measured = measurements(run(slow_start, *rows))

    expected = {"data": 0.2, "forward": 0.3, "backward": 0.4, "optimizer": 0.05, "other": 0.05}
    assert measured["shares"] == pytest.approx({**dict.fromkeys(SHARES, 0.0), **expected})
    assert measured["step_time"]["median"] == pytest.approx(1.0)
    assert measured["overhead"] == pytest.approx(0.4 / 4.4)


def rested(number: int, seconds: float, *, probes: float = 0.0) -> Event:
    """A step that is watched, after fifteen that were not and took 10 ms each."""
    return step(number, seconds=seconds, probes=probes, rested=15, rested_seconds=0.15)


def test_what_the_probes_cost_is_seen_in_the_steps_that_rest_among_them() -> None:
    rows = [step(n, seconds=0.01) for n in range(16)]
    dearer = [*rows, *(rested(n, 0.0125, probes=0.001) for n in range(1040, 1600, 16))]
    booked = [*rows, *(rested(n, 0.0101, probes=0.001) for n in range(1040, 1600, 16))]

    assert measurements(run(*dearer))["overhead_later"] == pytest.approx(0.0025 / 0.1625)
    assert measurements(run(*booked))["overhead_later"] == pytest.approx(0.001 / 0.1601)


def test_losses_of_steps_that_rested_are_among_the_others() -> None:
    late = step(4, loss=0.1, rested=3, rested_seconds=0.03, rested_epochs=1, rested_losses=[0.4, 0.3, 0.2])
    record = run(step(0, loss=0.5), late)
    assert measurements(record)["loss"] == [[0, 0.5], [1, 0.4], [2, 0.3], [3, 0.2], [4, 0.1]]
    assert measurements(record)["training"]["passes"] == 1
    assert [each.seconds for each in record.ranks[0].every_step][1:4] == pytest.approx([0.01] * 3)
    assert [each.step for each in record.ranks[0].steps] == [4]


@given(
    st.lists(
        st.fixed_dictionaries(
            {name: st.floats(0, 10) for name in ("seconds", "probes", "data", "forward", "backward", "optimizer")}
        ),
        max_size=30,
    )
)
def test_shares_sum_to_one_whatever_was_recorded(rows: list[Event]) -> None:
    told = shares([Step(**row) for row in rows])

    assert told is None or (sum(told.values()) == pytest.approx(1.0) and min(told.values()) >= 0)


@given(st.lists(st.floats(1e-6, 100), min_size=1, max_size=60))
def test_the_interval_of_the_median_holds_it(seconds: list[float]) -> None:
    told = step_time([Step(seconds=each) for each in seconds])

    assert told is not None
    assert told["interval"][0] <= told["median"] <= told["interval"][1]
    assert told["p10"] <= told["median"] <= told["p90"]


@given(st.permutations(list(range(12))))
def test_the_order_of_the_steps_does_not_matter_to_their_time(order: list[int]) -> None:
    times = [Step(seconds=1.0 + number) for number in range(12)]

    assert step_time([times[index] for index in order]) == step_time(times)


def test_a_long_series_is_thinned_and_keeps_its_ends() -> None:
    series = measurements(run(*(step(n, loss=float(n)) for n in range(5000))))["loss"]

    assert len(series) == 200
    assert (series[0], series[-1]) == ([0, 0.0], [4999, 4999.0])


def test_series_come_from_the_steps_or_from_events_of_that_name() -> None:
    rows = [step(0, scale=2.0), step(1, scale=1.0)]
    norms: list[Event] = [{"kind": "grad_norm", "step": 1, "value": 3.5}]
    measured = measurements(run(*rows, *norms))

    assert measured["scale"] == [[0, 2.0], [1, 1.0]]
    assert measured["grad_norm"] == [[1, 3.5]]


def test_memory_is_given_in_bytes_after_warm_up() -> None:
    rows = [step(n, rss=1000 + n, allocated=None, peak=70 - n) for n in range(5)]
    memory = measurements(run(*rows))["memory"]

    assert memory["rss"] == {"first": 1001, "last": 1004, "highest": 1004}
    assert memory["allocated"] is None
    assert memory["peak"] == 70


def test_the_setup_is_what_the_job_told_of_itself() -> None:
    start: Event = {"kind": "start", "argv": ["python", "train.py"], "world_size": 2, "versions": {"torch": "2.13"}}
    setup: Event = {
        "kind": "setup",
        "models": [{"class": "Net", "parameters": {"float32": 10}}],
        "optimizers": [{"class": "SGD"}],
        "batch": [{"shape": [2, 4]}],
        "precision": {"autocast": "bfloat16"},
        "scaled": False,
        "loaders": [{"num_workers": 0}],
    }
    measured = measurements(run(start, step(0), setup))["setup"]

    assert measured["launch"] == ["python", "train.py"]
    assert measured["world_size"] == 2
    assert measured["parameters"] == {"float32": 10}
    assert measured["precision"] == {"autocast": "bfloat16", "scaler": False}
    assert (measured["batch"], measured["loader"]) == ([{"shape": [2, 4]}], [{"num_workers": 0}])


def test_every_rank_has_its_own_figures() -> None:
    fast = RankRecord(0, tuple(step(n) for n in range(5)))
    slow = RankRecord(1, tuple(step(n, seconds=3.0) for n in range(5)))
    ranks = measurements(RunRecord((fast, slow)))["ranks"]

    assert [(each["rank"], each["steps"], each["step_time"]["median"]) for each in ranks["each"]] == [
        (0, 5, 1),
        (1, 5, 3),
    ]


def test_overhead_of_nothing_is_unknown() -> None:
    assert overhead([]) is None


def test_the_overhead_later_is_that_after_the_steps_that_all_probes_watch() -> None:
    rows = [step(n, seconds=1.0, probes=0.5 if n <= FIRST else 0.01) for n in range(FIRST + 40)]
    assert measurements(run(*rows))["overhead_later"] == pytest.approx(0.01)
    assert measurements(run(*rows[:-30]))["overhead_later"] is None
