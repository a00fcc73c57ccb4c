"""Figures of several ranks, from records made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from torchtriage.core.plain import written
from torchtriage.examine.run.measures.figures import measurements
from torchtriage.examine.run.ranks.beside import BINS, DRAWN
from torchtriage.examine.run.record import RankRecord, RunRecord

Event = dict[str, Any]
STEP = {"kind": "step", "seconds": 0.1, "data": 0.01, "forward": 0.03, "backward": 0.05, "optimizer": 0.01}


def rank(number: int, steps: int = 40, world: int = 4, more: tuple[Event, ...] = (), **each: Any) -> RankRecord:
    start = {"kind": "start", "rank": number, "world_size": world, "pid": 100 + number, "host": "one"}
    rows = [{**STEP, "step": n, **each} for n in range(steps)]
    return RankRecord(number, (start, *rows, *more))


def told(*records: RankRecord) -> dict[str, Any]:
    found: dict[str, Any] = measurements(RunRecord(records))["ranks"]
    return found


def test_a_run_of_one_rank_compares_nothing() -> None:
    found = told(rank(0, world=1))

    assert found.keys() == {"world_size", "each"}
    assert found["each"][0].keys() == {"rank", "steps", "step_time", "shares"}


def test_each_rank_tells_where_it_ran_what_it_took_and_how_it_ended() -> None:
    model = {"devices": ["cuda:1"]}
    setup = {"kind": "setup", "models": [model]}
    ends: Event = {"kind": "end", "why": "exit"}
    one, two = told(rank(0, more=(setup, ends), rss=7, peak=3), rank(1, more=({"kind": "error"}, ends)))["each"]

    assert {name: one[name] for name in ("host", "pid", "device", "ended")} == {
        "host": "one", "pid": 100, "device": "cuda:1", "ended": "exit",
    }  # fmt: skip
    assert one["memory"] == {"rss": 7, "peak": 3}
    assert one["seconds"]["forward"] == pytest.approx(0.03)
    assert sum(one["seconds"].values()) == pytest.approx(0.1)
    assert (two["device"], two["memory"], two["ended"]) == (None, {"rss": None, "peak": None}, "error")


def test_a_rank_that_wrote_no_end_is_not_said_to_have_left() -> None:
    assert [row["ended"] for row in told(rank(0), rank(1))["each"]] == ["unknown", "unknown"]


def test_what_sets_a_rank_apart_is_told_beside_the_median_of_the_others() -> None:
    late: dict[str, Any] = {"data": 0.022, "backward": 0.038}
    differs = [row["differs"] for row in told(rank(0), rank(1), rank(2), rank(3, **late))["each"]]

    assert differs[:3] == [{}, {}, {}]
    assert differs[3] == pytest.approx({"data": 0.012, "backward": -0.012})


def test_of_two_ranks_each_is_compared_with_the_other() -> None:
    one, two = told(rank(0), rank(1, seconds=0.12, data=0.03))["each"]

    assert one["differs"] == pytest.approx({"step": -0.02, "data": -0.02})
    assert two["differs"] == pytest.approx({"step": 0.02, "data": 0.02})


@pytest.mark.parametrize(
    "other",
    [
        rank(1, seconds=0.104, data=0.014),  # 4 % of the step
        rank(1, steps=8, seconds=0.2, data=0.1),  # one of them is warm-up: seven are too few
        RankRecord(1, tuple({**STEP, "step": n, "seconds": 0.05 + 0.1 * (n % 3)} for n in range(40))),
    ],
    ids=["little", "few", "noise"],
)
def test_what_may_be_noise_sets_no_rank_apart(other: RankRecord) -> None:
    assert [row["differs"] for row in told(rank(0), other)["each"]] == [{}, {}]


def test_the_heat_map_has_the_same_bins_on_all_ranks() -> None:
    heat = told(rank(0, steps=1000), rank(1, steps=400, data=0.02))["heat"]

    assert (heat["of"], heat["ranks"], heat["wide"]) == (2, [0, 1], 17)
    assert heat["steps"][:2] == [3, 20]
    assert len(heat["steps"]) <= BINS
    assert list(heat["phases"]) == ["data", "forward", "backward", "optimizer"]  # the others took no time
    assert {len(row) for rows in heat["phases"].values() for row in rows} == {len(heat["steps"])}
    one, two = heat["phases"]["data"]
    assert set(one) == {0.01}
    assert (two[0], two[-1]) == (0.02, None)


def test_of_many_ranks_the_slowest_and_others_evenly_chosen_are_drawn() -> None:
    slow: dict[int, Any] = {500 + n: {"forward": 0.04, "backward": 0.04} for n in range(5)}
    found = told(*(rank(n, steps=20, world=512, **slow.get(n, {})) for n in range(512)))

    assert len(found["each"]) == 512
    assert found["heat"]["of"] == 512
    assert len(found["heat"]["ranks"]) == DRAWN
    assert set(slow) <= set(found["heat"]["ranks"])
    assert [row["rank"] for row in found["each"] if row["differs"]] == list(slow)


def test_ranks_without_steps_and_figures_that_are_no_numbers_are_left_out() -> None:
    broken = [{**STEP, "step": n, "data": float("nan"), "forward": float("inf")} for n in range(40)]
    found = told(rank(0), RankRecord(1, ()), RankRecord(2, tuple(broken)), RankRecord(3, ({"kind": "step"},)))

    assert found["heat"]["ranks"] == [0]
    assert [row["seconds"] is None for row in found["each"]] == [False, True, True, True]
    assert written(found)


def test_of_ranks_that_contradict_each_other_the_largest_job_counts() -> None:
    found = told(rank(0, world=1), rank(1, world=4))
    assert (found["world_size"], [row["rank"] for row in found["each"]]) == (4, [0, 1])


def test_one_rank_of_many_is_told_as_such() -> None:
    found = told(rank(2, world=4))
    assert found["each"][0]["differs"] == {}
    assert found["heat"]["ranks"] == [2]


def test_ranks_of_which_none_took_a_step_have_no_heat_map() -> None:
    assert told(RankRecord(0, ()), RankRecord(1, ()))["heat"] is None


REDUCE = {"group": "0", "seq": 7, "op": "all_reduce", "pending": True, "created": 5}


def hanging(number: int, **event: Any) -> RankRecord:
    stack = [["train.py", 30 + number, "main", []]]
    told = {"kind": "hang", "step": 40, "seconds": 3.0, "why": "hang-after", "stack": stack, **event}
    return rank(number, world=2, more=(told,))


def test_where_each_rank_stands_is_told_when_one_waits_in_vain() -> None:
    waits, still = told(hanging(0, state="waits", collectives=[REDUCE]), hanging(1, state="still"))["hang"]

    assert waits == {
        "rank": 0, "step": 40, "seconds": 3.0, "waits_in": "all_reduce", "seq": 7, "group": "0", "path": "train.py",
        "line": 30, "state": "waits", "error": None,
    }  # fmt: skip
    assert (still["rank"], still["line"], still["state"], still["waits_in"]) == (1, 31, "still", None)


def test_a_wait_that_the_recorder_does_not_know_is_named_by_its_call() -> None:
    waits, _ = told(hanging(0, state="waits", call={"op": "recv", "src": 1}), hanging(1, state="busy"))["hang"]
    assert (waits["waits_in"], waits["seq"]) == ("recv", None)


def test_the_error_that_others_wait_for_is_told_beside_their_wait() -> None:
    error: Event = {"kind": "error", "error": "ValueError", "message": "no such label", "path": "data.py", "line": 4}
    failed = told(hanging(0, state="waits", collectives=[REDUCE]), rank(1, world=2, more=(error,)))["hang"][1]
    assert (failed["state"], failed["error"], failed["path"], failed["line"]) == ("failed", "ValueError", "data.py", 4)


@pytest.mark.parametrize("state", ["busy", "seen"])
def test_ranks_that_work_hang_not(state: str) -> None:
    assert told(hanging(0, state=state), hanging(1, state=state))["hang"] == []
    assert told(rank(0), rank(1))["hang"] == []


def giving_up(number: int, message: str, seq: int = 7) -> RankRecord:
    reached = {"kind": "reached", "why": "error", "step": 40, "collectives": [{**REDUCE, "seq": seq}]}
    error = {"kind": "error", "error": "RuntimeError", "message": message}
    return rank(number, world=2, more=(reached, error))


@pytest.mark.parametrize(
    ("one", "two", "hangs"),
    [
        (giving_up(0, "gloo does not support this"), giving_up(1, "gloo does not support this"), False),
        (giving_up(0, "Connection closed by peer"), rank(1, world=2), True),
        (giving_up(0, "Connection closed by peer"), giving_up(1, "Connection reset", seq=8), True),
        (giving_up(0, "timed out after 60 s"), giving_up(1, "timed out after 60 s"), True),
    ],
)
def test_ranks_that_gave_up_waited_for_one_another_or_had_one_error(
    one: RankRecord, two: RankRecord, hangs: bool
) -> None:
    assert bool(told(one, two)["hang"]) is hangs
