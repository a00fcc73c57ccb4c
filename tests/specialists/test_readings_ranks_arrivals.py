"""Ranks that wait for each other: what is read from when they came, in records made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from records import STEP, Events

from torchtriage.catalog.load import catalog
from torchtriage.core.evidence import Evidence, Inconclusive, Observed, Outcome
from torchtriage.diagnose import weigh
from torchtriage.examine.detector import perform
from torchtriage.examine.run.measures.figures import measurements
from torchtriage.examine.run.ranks.meetings import meetings
from torchtriage.examine.run.record import RankRecord, RunRecord
from torchtriage.specialists.distributed_training_strategies.readings import arrivals, communication, wrappers

COUNT = 60
LONG = 0.1  # seconds of a step
EPOCH = 1_700_000_000_000_000_000  # nanoseconds
Late = Callable[[int], float]


def rank(
    number: int, world: int = 2, *, late: Late = lambda _: 0.0, clock: float = 0.0, exposed: float = 0.002,
    pairs: int = 0, start: dict[str, Any] | None = None, **row: Any,
) -> RankRecord:  # fmt: skip
    """One whose backward of each step begins its only all-reduce at 60 ms and LATE, and ends EXPOSED after the last."""
    rows, ends = [], []
    for step in range(COUNT):
        began = 1e6 * (LONG * step + clock)
        came = began + 1e6 * (0.06 + late(step))
        level = began + 1e6 * (0.07 + exposed)
        rows.append([step, 0, step + 1, int(came), step + 1, int(came), int(came), 1, 4 << 20])
        ends.append([step, int(began + 40_000), int(level), 0, int(began + 100_000)])
    groups, kinds = [["0", list(range(world))]], [["all_reduce", 4 << 20, COUNT]]
    look = {"base": EPOCH, "groups": groups, "rows": rows, "ends": ends, "pairs": pairs, "kinds": kinds}
    first = {"kind": "start", "step": 0, "rank": number, "world_size": world, **(start or {})}
    steps = [{**STEP, "step": step, "cpu": 0.05, "queued": 0.0, **row} for step in range(COUNT)]
    return RankRecord(number, (first, *steps, {"kind": "collectives", "step": COUNT - 1, **look}))


def outcome(detector: Any, *ranks: RankRecord) -> Outcome:
    (seen,) = perform([detector], RunRecord(ranks))
    return seen


def evidence(detector: Any, *ranks: RankRecord) -> tuple[Evidence, ...]:
    seen = outcome(detector, *ranks)
    assert not isinstance(seen, Inconclusive), seen
    return seen.evidence


def found(detector: Any, *ranks: RankRecord) -> set[str]:
    return {finding.fault.slug for finding in weigh.findings([outcome(detector, *ranks)], catalog())}


def stacks(*lines: tuple[str, int, int]) -> dict[str, Any]:
    """Samples of lines: phase, line, how many."""
    told = [[phase, "train.py", line, "loop", False, count] for phase, line, count in lines]
    calls = [[*each[:-1], 0, each[-1]] for each in told]
    samples = sum(count for _, _, count in lines)
    return {"kind": "stacks", "step": 40, "since": 10, "samples": samples, "parts": {}, "lines": told, "calls": calls}


@pytest.mark.parametrize(
    ("late", "slugs"),
    [
        pytest.param(lambda _: 0.02, {"straggler"}, id="a fifth of a step"),
        pytest.param(lambda _: 0.005, set(), id="a twentieth"),
        pytest.param(lambda step: 0.04 * (step % 2), set(), id="in every other step"),
        pytest.param(lambda step: 0.5 * (step % 20 == 19), set(), id="now and then"),
        pytest.param(lambda step: 0.03 * (-1) ** step, set(), id="late and early by turns"),
    ],
)
def test_a_rank_is_a_straggler_when_it_is_late_in_most_steps(late: Late, slugs: set[str]) -> None:
    assert found(arrivals.straggler, rank(0), rank(1, late=late)) == slugs


def test_a_delay_is_read_to_a_tenth_whatever_else_makes_steps_uneven() -> None:
    other = rank(0, late=lambda step: 0.004 * (step % 5))
    (seen,) = evidence(arrivals.straggler, other, rank(1, late=lambda step: 0.02 + 0.004 * (step // 5 % 5)))
    assert seen.value is not None
    assert seen.value == pytest.approx(0.2, rel=0.1)
    assert seen.spread is not None
    assert seen.spread[0] <= 0.2 <= seen.spread[1]


def test_the_late_rank_of_four_is_named_and_nobody_else() -> None:
    (seen,) = evidence(arrivals.straggler, *(rank(n, 4, late=lambda _, n=n: 0.03 * (n == 2)) for n in range(4)))
    assert seen.place.rank == 2


def test_phase_and_line_are_those_that_take_the_late_rank_longer() -> None:
    fast, slow = rank(0), rank(1, late=lambda _: 0.02, forward=0.05, backward=0.02)
    lines = (stacks(("forward", 7, 30), ("backward", 9, 70)), stacks(("forward", 7, 50), ("backward", 9, 50)))
    pair = [RankRecord(each.rank, (*each.rows, look)) for each, look in zip((fast, slow), lines, strict=True)]
    (seen,) = evidence(arrivals.straggler, *pair)
    assert (seen.place.path, seen.place.line) == ("train.py", 7)
    assert "20.0 ms longer in forward" in seen.fact


def test_who_waits_for_a_cpu_longer_than_the_others_on_a_busy_machine_is_not_to_blame() -> None:
    starved = rank(1, late=lambda _: 0.02, queued=0.05)
    assert isinstance(outcome(arrivals.straggler, rank(0, queued=0.03), starved), Inconclusive)
    assert found(arrivals.straggler, rank(0), rank(1, late=lambda _: 0.02, queued=0.03)) == {"straggler"}


def test_who_waits_longer_because_it_has_more_to_do_is() -> None:
    more = rank(1, late=lambda _: 0.02, cpu=0.075, queued=0.045)
    assert found(arrivals.straggler, rank(0, queued=0.03), more) == {"straggler"}


def test_clocks_of_hosts_are_aligned_by_what_ends_together() -> None:
    here, there = {"host": "a"}, {"host": "b"}
    ranks = [rank(0, start=here), rank(1, start=there, clock=7.5, late=lambda _: 0.02)]
    (seen,) = evidence(arrivals.straggler, *ranks)
    assert seen.value == pytest.approx(0.2, rel=0.01)
    assert meetings(RunRecord(tuple(ranks))).residual < 1e-6
    assert found(arrivals.straggler, rank(0, start=here), rank(1, start=there, clock=7.5)) == set()


def test_ranks_that_counted_differently_did_not_meet() -> None:
    other = rank(1, late=lambda _: 0.02)
    look = other.rows[-1]
    shifted = {**look, "rows": [[step, group, first + 1, *rest] for step, group, first, *rest in look["rows"]]}
    assert found(arrivals.straggler, rank(0), RankRecord(1, (*other.rows[:-1], shifted))) == set()


@pytest.mark.parametrize(
    ("each", "slugs"),
    [
        pytest.param({"exposed": 0.03}, {"communication-bound"}, id="a third of a step after the last gradient"),
        pytest.param({"exposed": 0.002}, set(), id="little"),
        pytest.param({"exposed": 0.0, "communication": 0.03}, {"communication-bound"}, id="waited for by hand"),
    ],
)
def test_exposed_communication_is_what_even_the_last_rank_waits(each: dict[str, Any], slugs: set[str]) -> None:
    assert found(communication.communication, rank(0, **each), rank(1, **each)) == slugs


def test_waiting_for_a_straggler_is_no_communication() -> None:
    pair = rank(0, late=lambda _: -0.04), rank(1, exposed=0.0)
    assert found(communication.communication, *pair) == set()
    assert found(arrivals.straggler, *pair) == {"straggler"}


def test_stages_of_a_pipeline_are_not_judged() -> None:
    pair = [rank(n, exposed=0.03, pairs=8) for n in range(2)]
    assert isinstance(outcome(communication.communication, *pair), Inconclusive)


def test_on_a_busy_machine_what_the_collectives_carry_must_explain_the_share() -> None:
    busy: dict[str, Any] = {"exposed": 0.03, "queued": 0.05}
    assert isinstance(outcome(communication.communication, rank(0, **busy), rank(1, **busy)), Inconclusive)
    assert found(communication.communication, rank(0, cpu=0.004, **busy), rank(1, cpu=0.004, **busy)) == set()


@pytest.mark.parametrize(
    ("held", "told"), [(0.03, Inconclusive), (0.001, Observed)], ids=["most of the wait", "hardly any"]
)
def test_threads_that_waited_for_a_cpu_make_a_machine_busy(held: float, told: type) -> None:
    pair = [rank(number, exposed=0.03) for number in (0, 1)]
    pair = [RankRecord(each.rank, (*each.rows[:-1], {**each.rows[-1], "queued": held})) for each in pair]
    assert isinstance(outcome(communication.communication, *pair), told)


def test_what_only_waits_at_the_end_of_backward_is_counted_as_communication() -> None:
    told = measurements(RunRecord((rank(0, exposed=0.02), rank(1, exposed=0.02))))
    assert told["shares"]["communication"] == pytest.approx(0.3, abs=0.01)
    assert told["shares"]["backward"] == pytest.approx(0.1, abs=0.01)
    assert [each["late"] for each in told["ranks"]["each"]] == [0.0, 0.0]
    assert told["ranks"]["late"] == {"clock_residual": 0.0, "steps": COUNT - 1}


def test_on_a_device_the_times_of_the_host_tell_nothing() -> None:
    pair = [rank(n, allocated=2**20, late=lambda _, n=n: 0.03 * n) for n in range(2)]
    assert isinstance(outcome(arrivals.straggler, *pair), Inconclusive)
    assert found(communication.communication, *pair) == set()


def test_one_process_is_not_looked_at() -> None:
    events: Events = [{"kind": "start", "world_size": 1}]
    alone = RankRecord(0, tuple(events))
    assert evidence(arrivals.straggler, alone) == ()
    assert evidence(communication.communication, alone) == ()


WRAPPER = {
    "kind": "wrapper", "step": 10, "name": "Net", "path": "train.py", "line": 5, "world": 2, "buckets": [1 << 20],
    "looks": 10, "spared": False, "searches": 0, "unused": 0, "passes": 10, "size": 1 << 20, "cap": 25 << 20,
}  # fmt: skip
UNREDUCED = "Expected to have finished reduction in the prior iteration before starting a new one. Parameter indices \
which did not receive grad for rank 1: 1 2\n In addition"


def wrapped(number: int = 0, *events: dict[str, Any], **each: Any) -> RankRecord:
    return RankRecord(number, ({"kind": "start", "world_size": 2}, {**WRAPPER, **each}, *events))


@pytest.mark.parametrize(
    ("each", "slugs"),
    [
        ({"searches": 1}, {"unused-parameters"}),
        ({"searches": 1, "spared": True}, set()),
        ({"searches": 1, "looks": 3}, set()),
        ({"searches": 1, "world": 1}, set()),
        ({}, set()),
    ],
)
def test_a_search_is_in_vain_when_no_pass_left_a_parameter_out(each: dict[str, Any], slugs: set[str]) -> None:
    assert found(wrappers.unused_parameters, wrapped(**each)) == slugs


def test_parameters_that_got_no_gradient_are_named_by_their_numbers() -> None:
    error = {"kind": "error", "step": 1, "message": UNREDUCED, "path": "train.py", "line": 12}
    last, built = evidence(
        wrappers.unused_parameters, wrapped(1, error, names=["body.weight", "aux.weight", "aux.bias"])
    )
    assert (last.place.line, last.place.module, built.place.line) == (12, "aux", 5)
    assert "2 parameters got no gradient in a backward pass (aux.weight, aux.bias)" in last.fact


@pytest.mark.parametrize(
    ("buckets", "slugs"),
    [
        ([1024] * 40, {"bucket-size"}),
        ([1024] * 4, set()),
        ([1 << 20, 25 << 20, 25 << 20], set()),
        ([100 << 20], {"bucket-size"}),
        ([20 << 20], set()),
    ],
)
def test_buckets_are_too_small_when_many_are_tiny_and_too_large_when_one_holds_all(
    buckets: list[int], slugs: set[str]
) -> None:
    assert found(wrappers.bucket_size, wrapped(buckets=buckets)) == slugs


def by_turns(every: int, seconds: float, other: float = 0.0) -> list[RankRecord]:
    """Rank 0 saves before every so many steps, and takes so long; rank 1 comes OTHER late in each step."""

    def late(step: int) -> float:
        return seconds if step % every == 0 else 0.0

    ranks = [rank(0, late=late), rank(1, late=lambda _: other)]
    steps = [row for row in ranks[0].rows if row["kind"] == "step"]
    rows = [{**row, "seconds": row["seconds"] + late(row["step"])} for row in steps]
    others = [row for row in ranks[0].rows if row["kind"] != "step"]
    return [RankRecord(0, (others[0], *rows, *others[1:])), ranks[1]]


@pytest.mark.parametrize(
    ("every", "seconds", "slugs"),
    [(2, 0.2, {"straggler"}), (5, 0.5, {"straggler"}), (2, 0.001, set()), (5, 0.02, set()), (30, 0.9, set())],
    ids=["every-second", "every-fifth", "too-short", "a-small-part", "twice-only"],
)
def test_a_rank_that_is_late_at_equal_distances_is_a_straggler_when_it_costs_a_fifth(
    every: int, seconds: float, slugs: set[str]
) -> None:
    assert found(arrivals.straggler, *by_turns(every, seconds)) == slugs


def test_of_a_rank_that_is_late_by_turns_the_distance_and_the_share_are_told() -> None:
    (said,) = evidence(arrivals.straggler, *by_turns(2, 0.2))
    assert "in one step of 2" in said.fact
    assert "in other" in said.fact
    assert said.place.rank == 0


def test_pauses_at_unequal_distances_are_the_machine_s() -> None:
    odd = {4, 9, 11, 18, 19, 27, 35, 36, 44, 50}
    ranks = [rank(0, late=lambda step: 0.3 if step in odd else 0.0), rank(1)]
    assert found(arrivals.straggler, *ranks) == set()
