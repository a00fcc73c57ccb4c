"""Who is missing in which collective, from records made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from torchtriage.core.evidence import Observed
from torchtriage.examine.detector import perform
from torchtriage.examine.run.job.events import Ended
from torchtriage.examine.run.ranks.deaths import deaths
from torchtriage.examine.run.record import RankRecord, RunRecord
from torchtriage.specialists.distributed_training_strategies.readings import hangs, launch

Event = dict[str, Any]
DETECTORS = (hangs.collective_on_some_ranks, hangs.uneven_steps, hangs.collective_timeout)
LOOP, AFTER = ("train.py", 20, "main", [18]), ("train.py", 30, "main", [])
WITHIN = ("train.py", 24, "main", [18, 23])  # a loop of its own in a step
END = {"kind": "end", "step": 40, "why": "exit"}
CLOSED = {"kind": "error", "step": 40, "time": 2, "error": "RuntimeError", "message": "Connection closed by peer"}
TIMED = {"kind": "error", "step": 40, "time": 2, "error": "RuntimeError", "message": "Timed out waiting 1000ms"}
OWN = {"kind": "error", "step": 40, "time": 1, "error": "ValueError", "message": "no", "path": "train.py", "line": 9}


def entry(seq: int, op: str = "all_reduce", size: int = 8, group: str = "0", **more: Any) -> Event:
    told = {"group": group, "seq": seq, "p2p": False, "op": op, "created": seq, "sizes": [[size]], "dtypes": ["Float"]}
    return {**told, "pending": False, "path": "train.py", "line": 20, **more}


def hang(state: str, last: int, where: tuple[Any, ...] = LOOP, **more: Any) -> Event:
    """Waiting: number LAST is under way."""
    entries = [entry(seq) for seq in range(1, last)] + [entry(last, pending=state == "waits")]
    told = {"kind": "hang", "step": 40, "seconds": 5.0, "why": "hang-after", "state": state, "stack": [list(where)]}
    rest = {"collectives": entries, "last": {"0": last}, "groups": {"0": [0, 1]}, "backwards": 40, "forwards": 41}
    return {**told, "call": None, "training": False, **rest, **more}


def seen(*ranks: list[Event]) -> dict[str, list[tuple[int | None, int | None]]]:
    """Lines and ranks of the evidence, by what was found."""
    records = RunRecord(tuple(RankRecord(number, tuple(events)) for number, events in enumerate(ranks)))
    found = {}
    for outcome in perform(DETECTORS, records):
        assert isinstance(outcome, Observed), outcome
        if outcome.evidence:
            slug = outcome.detector.removeprefix("run/")
            found[slug] = [(item.place.line, item.place.rank) for item in outcome.evidence]
    return found


WAITS, STILL = [hang("waits", 6)], [hang("still", 5, AFTER)]
OTHER_GROUP = hang("waits", 6, groups={"0": [0]})
REACHED = {"kind": "reached", "step": 38, "last": {"0": 5}, "groups": {}, "backwards": 38, "collectives": []}
TRAINS = hang("waits", 6, training=True, batches=41)
LATER = {"kind": "moved", "step": 41, "seconds": 9.0}
UNLIKE = hang("waits", 6, AFTER, collectives=[entry(6, "barrier", line=30, pending=True)])
SWAPPED = [entry(5, size=64, line=30), entry(6, size=8, pending=True, line=31)]
MEETING = {
    "kind": "meeting", "done": 0, "n": 3, "at": 1, "step": 40, "backwards": 40, "op": "all_reduce", "size": 1,
    "dtype": "torch.float32", "path": "train.py", "line": 25, "loops": [["main", 18]],
}  # fmt: skip
CUT_OFF = {**MEETING, "op": "backward", "size": 0, "line": 20, "loops": [["main", 18], ["main", 15]]}
ROUNDS = {"kind": "rounds", "step": 0, "loops": [["main", 18]]}
LOST = hang("ended", 6, why="error", training=True)
SENDS = hang("waits", 5, AFTER, collectives=[], call={"op": "send", "dst": 1})


@pytest.mark.parametrize(
    ("ranks", "expected"),
    [
        ((WAITS, STILL), {"collective-on-some-ranks": [(30, 1), (20, 0)]}),
        ((WAITS, [hang("busy", 5, AFTER)]), {}),
        (([hang("waits", 6, training=True)], [hang("still", 5, WITHIN)]), {"collective-on-some-ranks": [(24, 1), (20, 0)]}),
        ((WAITS, [hang("seen", 5, AFTER, why="signal", seconds=0.1)]), {}),
        ((WAITS, [hang("still", 5, AFTER), LATER]), {}),
        (([*WAITS, LATER], STILL), {}),
        (([OTHER_GROUP], STILL), {}),
        ((WAITS, [{**REACHED, "backwards": 40}, END]), {"collective-on-some-ranks": [(20, 0)]}),
        (([hang("waits", 6, training=True)], [REACHED, END]), {"uneven-steps": [(20, 0)]}),
        (([hang("waits", 6, training=True)], [UNLIKE]), {"uneven-steps": [(20, 0), (30, 1)]}),
        (([TRAINS], [{**UNLIKE, "batches": 41}]), {"collective-on-some-ranks": [(20, 0), (30, 1)]}),
        (([TRAINS], [{**UNLIKE, "batches": 40}]), {"uneven-steps": [(20, 0), (30, 1)]}),
        (([hang("waits", 6, training=True)], STILL), {"collective-on-some-ranks": [(30, 1), (20, 0)]}),
        ((WAITS, [UNLIKE]), {"collective-on-some-ranks": [(20, 0), (30, 1)]}),
        ((WAITS, [hang("waits", 6, AFTER, collectives=SWAPPED)]), {"collective-on-some-ranks": [(20, 0), (30, 1)]}),
        ((WAITS, [hang("waits", 6)]), {}),
        ((WAITS, [OWN]), {}),
        (([LOST, CLOSED], [OWN]), {}),
        (([LOST, CLOSED], [MEETING]), {"collective-on-some-ranks": [(25, 1), (20, 0)]}),
        (([LOST, CLOSED], [hang("waits", 1), LATER, MEETING]), {"collective-on-some-ranks": [(25, 1), (20, 0)]}),
        (([LOST, CLOSED], [{**MEETING, "loops": [], "backwards": 39}]), {"uneven-steps": [(20, 0), (25, 1)]}),
        (([LOST, CLOSED], [{**MEETING, "size": 8}]), {}),
        (([LOST, CLOSED], [{**MEETING, "done": 1}]), {}),
        (([MEETING], [{**MEETING, "size": 8, "line": 27}]), {"collective-on-some-ranks": [(25, 0), (27, 1)]}),
        (([MEETING], [{**MEETING, "op": "backward", "size": 0}]), {"collective-on-some-ranks": [(25, 0), (25, 1)]}),
        (([CUT_OFF], [{**MEETING, "loops": []}]), {"uneven-steps": [(20, 0), (25, 1)]}),
        (([ROUNDS, CUT_OFF], [ROUNDS, {**MEETING, "loops": [["main", 15]]}]), {"uneven-steps": [(20, 0), (25, 1)]}),
        (([CUT_OFF], [{**MEETING, "loops": [], "backwards": 41}]), {"collective-on-some-ranks": [(20, 0), (25, 1)]}),
        (([CUT_OFF], [END]), {"uneven-steps": [(20, 0)]}),
        (([{**CUT_OFF, "done": 1}], [{**MEETING, "loops": []}]), {}),
        (([MEETING], [MEETING]), {}),
        (([MEETING], [{**MEETING, "size": 8, "n": 4}]), {}),
        (([MEETING], [{**MEETING, "size": 8, "done": 1}]), {}),
        (([{**MEETING, "op": "all_to_all_single"}], [{**MEETING, "op": "all_to_all_single", "size": 8}]), {}),
        (([MEETING], [{**MEETING, "size": 8}], [MEETING]), {}),
        (([LOST, TIMED], [hang("seen", 5, AFTER, why="signal", seconds=2.0)]), {"collective-timeout": [(20, 0), (30, 1)]}),
        (([SENDS], STILL), {"collective-on-some-ranks": [(30, 0), (30, 1)]}),
        (([SENDS], [hang("waits", 5, AFTER, call={"op": "recv", "src": 0})]), {}),
        ((WAITS,), {}),
    ],
)  # fmt: skip
def test_a_wait_has_the_reason_that_the_ranks_tell_together(ranks: Any, expected: Any) -> None:
    assert seen(*ranks) == expected


def test_sources_that_differ_are_named_where_all_are_in_the_same_broadcast() -> None:
    each = [
        hang("waits", 6, call={"op": "broadcast", "src": rank}, collectives=[entry(6, "broadcast", pending=True)])
        for rank in (0, 1)
    ]
    assert seen([each[0]], [each[1]]) == {"collective-on-some-ranks": [(20, 0), (20, 1)]}
    assert seen([each[0]], [each[0]]) == {}


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        (([LOST, CLOSED], [OWN]), ["rank 1 ended at step 40 with ValueError at train.py:9", "since rank 1 had ended"]),
        ((WAITS, [OWN]), ["rank 1 ended at step 40 with ValueError", "rank 0 waited for others at train.py:20"]),
        ((WAITS, [{**MEETING, "done": 1}]), ["the process of rank 1 was ended", "rank 0 waited for others"]),
        ((STILL,), ["rank 0 stood still at train.py:30 for 5 s"]),
        (([END], [END]), []),
    ],
)
def test_the_end_that_began_it_is_told_first(ranks: Any, said: list[str]) -> None:
    records = [RankRecord(number, tuple(events)) for number, events in enumerate(ranks)]
    told = [each.why for each in deaths(records, {record.rank: Ended() for record in records})]
    assert len(told) == len(said)
    assert all(part in why for part, why in zip(said, told, strict=True)), told


JOINING = {"kind": "joining", "step": 0, "path": "train.py", "line": 7, "where": "10.0.0.1:29500"}
UNJOINED = {"kind": "unjoined", "step": 0}


@pytest.mark.parametrize(
    ("ranks", "says"),
    [
        (([JOINING, UNJOINED, TIMED], [JOINING]), ["rank 0 found no process group at 10.0.0.1:29500 (Timed out"]),
        (
            ([JOINING, UNJOINED, TIMED], [{**JOINING, "where": "10.0.0.1:29501"}]),
            ["rank 0 found no process group at 10.0.0.1:29500, another looked at 10.0.0.1:29501"],
        ),
        (([JOINING, UNJOINED, TIMED], [JOINING, OWN]), []),
        (([JOINING, TIMED], [JOINING, TIMED]), []),
        (([JOINING], [JOINING]), []),
    ],
    ids=["nobody-came", "another-place", "died-of-its-own", "joined", "under-way"],
)
def test_ranks_that_never_found_each_other_are_told_with_where_they_looked(ranks: Any, says: list[str]) -> None:
    record = RunRecord(tuple(RankRecord(number, tuple(events)) for number, events in enumerate(ranks)))
    told, timeouts = perform((launch.launch_environment, hangs.collective_timeout), record)
    assert isinstance(told, Observed)
    assert [item.fact[: len(start)] for item, start in zip(told.evidence, says, strict=True)] == says
    assert isinstance(timeouts, Observed)
    assert not (says and timeouts.evidence)
