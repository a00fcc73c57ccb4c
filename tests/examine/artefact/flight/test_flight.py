from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from mutated import mutations

from torchtriage.core.evidence import Inconclusive, Observed, Outcome
from torchtriage.examine.artefact.flight import Dumps, measurements, read
from torchtriage.examine.artefact.flight.plain import plain
from torchtriage.examine.detector import perform
from torchtriage.specialists.distributed_training_strategies.readings import dumps as readings
from torchtriage.triage import read as triaged

FRAMES = [
    {
        "filename": "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py",
        "line": 9,
        "name": "all_reduce",
    },
    {"filename": "/job/train.py", "line": 20, "name": "step"},
]


def entry(seq: int, op: str = "nccl:all_reduce", **more: Any) -> dict[str, Any]:
    told = {
        "record_id": seq, "pg_id": 0, "process_group": ("0", "default_pg"), "collective_seq_id": seq, "p2p_seq_id": 0,
        "op_id": seq, "profiling_name": op, "time_created_ns": 10**18 + seq, "input_sizes": [[8]], "input_dtypes": ["Float"],
        "output_sizes": [[8]], "output_dtypes": ["Float"], "state": "completed", "retired": True, "timeout_ms": 600000,
        "is_p2p": False, "frames": FRAMES,
    }  # fmt: skip
    return {**told, **more}


def pending(seq: int, op: str = "nccl:all_reduce", **more: Any) -> dict[str, Any]:
    return entry(seq, op, **{"state": "started", "retired": False, **more})


def dump(*entries: dict[str, Any], ranks: str = "[0, 1]", **more: Any) -> dict[str, Any]:
    group = {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}}
    return {"version": "2.10", "pg_config": group, "pg_status": {}, "entries": list(entries), **more}


def written(folder: Path, *dumps: Any, name: str = "nccl_trace_rank_{}") -> list[str]:
    paths = [folder / name.format(rank) for rank in range(len(dumps))]
    for path, each in zip(paths, dumps, strict=True):
        path.write_bytes(pickle.dumps(each, 2))
    return [str(path) for path in paths]


def seen(noun: Dumps) -> Outcome:
    (outcome,) = perform([readings.collective_on_some_ranks], noun)
    return outcome


def facts(noun: Dumps) -> list[str]:
    outcome = seen(noun)
    assert isinstance(outcome, Observed)
    return [f"{item.place}: {item.fact}" for item in outcome.evidence]


DONE = [entry(1), entry(2)]
BARRIER = pending(
    3,
    "nccl:barrier",
    input_sizes=[],
    input_dtypes=[],
    frames=[{"filename": "/job/train.py", "line": 30, "name": "save"}],
)
SHORT = pending(3, input_sizes=[[4]])


@pytest.mark.parametrize(
    ("ranks", "words"),
    [
        pytest.param((DONE, DONE), [], id="all have ended"),
        pytest.param(([*DONE, pending(3)], [*DONE, pending(3)]), [], id="all are in the same one"),
        pytest.param(
            ([*DONE, pending(3)], DONE),
            ["train.py:20, rank 0", "rank 1 has asked for nothing since all_reduce number 2 of group 0 at /job/train.py:20"],
            id="one is missing",
        ),
        pytest.param(([*DONE, pending(3)], []), ["rank 1 has asked for no collective at all"], id="one never came"),
        pytest.param(
            ([*DONE, pending(3)], [*DONE, BARRIER]),
            ["train.py:20, rank 0", "train.py:30, rank 1", "is barrier on rank 1"],
            id="another operation",
        ),
        pytest.param(([*DONE, pending(3)], [*DONE, SHORT]), ["8 Float on rank 0, all_reduce of 4 Float"], id="shape"),
        pytest.param(
            ([*DONE, pending(3)], [*DONE, pending(3, input_dtypes=["Half"])]), ["8 Half on rank 1"], id="dtype"
        ),
        pytest.param(
            ([*DONE, pending(3), pending(4, input_sizes=[[4]])], [*DONE, SHORT, pending(4)]),
            ["the same collectives in another order"],
            id="order",
        ),
        pytest.param(
            ([*DONE, pending(3, "nccl:all_to_all")], [*DONE, pending(3, "nccl:all_to_all", input_sizes=[[4]])]),
            [],
            id="an operation whose sizes may differ",
        ),
        pytest.param(
            ([*DONE, pending(1, "nccl:send 0->1", is_p2p=True, p2p_seq_id=1)], DONE),
            ["rank 0 waits in send to rank 1", "has asked for nothing since"],
            id="a send that nobody receives",
        ),
        pytest.param(
            ([pending(1, "nccl:send 0->1", is_p2p=True)], [pending(1, "nccl:recv 1<-0", is_p2p=True)]),
            [],
            id="a send and its recv",
        ),
    ],
)  # fmt: skip
def test_what_ranks_asked_for_is_set_side_by_side(tmp_path: Path, ranks: Any, words: list[str]) -> None:
    found = facts(read(written(tmp_path, *(dump(*entries) for entries in ranks))))
    assert bool(found) == bool(words)
    assert [word for word in words if word not in " ".join(found)] == []


def test_a_rank_outside_of_a_group_is_not_missing_in_it(tmp_path: Path) -> None:
    config = {"0": {"name": "0", "desc": "", "ranks": "[0, 1]"}, "7": {"name": "7", "desc": "", "ranks": "[0]"}}
    own = pending(1, process_group=("7", "mine"), pg_id=1)
    assert facts(read(written(tmp_path, dump(*DONE, own, pg_config=config), dump(*DONE, pg_config=config)))) == []
    untold = {"": {"name": "", "desc": "", "ranks": "[]"}}
    assert facts(read(written(tmp_path, dump(*DONE, own, pg_config=untold), dump(*DONE, pg_config=untold)))) == []


def test_groups_of_one_name_and_other_ranks_are_not_compared(tmp_path: Path) -> None:
    def config(ranks: str) -> dict[str, Any]:
        return {"0": {"name": "0", "desc": "", "ranks": "[0, 1, 2, 3]"}, "5": {"name": "5", "desc": "", "ranks": ranks}}

    mine = {"process_group": ("5", "pair"), "pg_id": 1}
    first = [dump(*DONE, pending(1, **mine), pg_config=config("[0, 1]"))] * 2
    second = [
        dump(*DONE, pending(1, "nccl:barrier", **mine), pg_config=config("[2, 3]")),
        dump(*DONE, pg_config=config("[2, 3]")),
    ]
    found = facts(read(written(tmp_path, *first, *second)))
    assert found[0].startswith(
        "/job/train.py:20, rank 2: rank 2 of ranks 2, 3 waits in barrier number 1 of group 5 of ranks 2, 3"
    )


def test_of_a_full_ring_the_latest_collectives_are_kept(tmp_path: Path) -> None:
    early = [entry(seq) for seq in range(1, 400)]
    ranks = [dump(*early, pending(400), ranks=str([*range(70)]))] * 69 + [dump(*early, ranks=str([*range(70)]))]
    noun = read(written(tmp_path, *ranks))
    assert {len(rank.rows[0]["collectives"]) for rank in noun.record.ranks} == {256}
    assert noun.record.ranks[0].rows[0]["collectives"][-1]["pending"]
    assert "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 61 more of ranks" in facts(noun)[0]
    assert "rank 69 has asked for nothing since all_reduce number 399" in facts(noun)[0]


def test_a_version_that_is_not_known_is_told(tmp_path: Path) -> None:
    noun = read(written(tmp_path, dump(*DONE, version="3.1"), dump(*DONE)))
    assert ["version 3.1" in each.why for each in noun.inconclusive] == [True]


def test_what_the_ring_has_lost_is_counted_by_the_status_of_the_group(tmp_path: Path) -> None:
    status = {"0": {"last_enqueued_collective": "3", "last_completed_collective": "3"}}
    paths = written(tmp_path, dump(entry(2), pending(3)), dump(entry(2), pg_status=status))
    assert facts(read(paths)) == []


@pytest.mark.parametrize(
    ("ranks", "why"),
    [
        pytest.param("[0, 1, 2]", "1 of 3 ranks left no dump: 2; those that did wait in all_reduce number 3 of group 0", id="one left no dump"),
        pytest.param("[0, 1]", "all 2 ranks are in all_reduce number 3 of group 0 and ask for the same", id="all wait alike"),
    ],
)  # fmt: skip
def test_what_the_dumps_cannot_tell_is_said(tmp_path: Path, ranks: str, why: str) -> None:
    both = [dump(*DONE, pending(3), ranks=ranks)] * 2
    (unseen,) = read(written(tmp_path, *both)).inconclusive
    assert why in unseen.why


def test_one_dump_alone_is_one_side(tmp_path: Path) -> None:
    noun = read(written(tmp_path, dump(*DONE, pending(3), ranks="[0]")))
    assert [each.why for each in noun.inconclusive] == ["one dump tells one side of each collective"]


def test_ranks_are_those_at_the_ends_of_the_names(tmp_path: Path) -> None:
    paths = written(tmp_path, *[dump(*DONE)] * 11, name="job7_{}.pickle")
    assert [each.rank for each in read(paths[::-1]).record.ranks] == list(range(11))


def test_dumps_without_ranks_in_their_names_are_numbered_and_that_is_said(tmp_path: Path) -> None:
    paths = []
    for name in "ab":
        (tmp_path / name).write_bytes(pickle.dumps(dump(*DONE)))
        paths.append(str(tmp_path / name))
    noun = read(paths)
    assert [each.rank for each in noun.record.ranks] == [0, 1]
    assert "do not end in ranks" in noun.inconclusive[0].why


def test_of_two_dumps_of_a_rank_the_newest_counts(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    noun = read(
        [*written(old, dump(*DONE), dump(*DONE)), *written(new, dump(*DONE, pending(3)), dump(*DONE, pending(3)))]
    )
    assert all(str(new) in path for path in noun.paths.values())
    assert sum("the others were left out" in each.why for each in noun.inconclusive) == 2


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"cposix\nsystem\n(X\x04\x00\x00\x00truetR.", "posix.system at byte 0"),
        (pickle.dumps({"entries": 3}), "entries is no list"),
        (pickle.dumps([1]), "no Flight Recorder dump"),
        (pickle.dumps(dump(*DONE))[:-40], "the file ends at byte"),
        (b'{"entries": [', "no whole JSON"),
        (b'{"pg_config":' * 100_000, "no whole JSON"),
        (b"", "ends at byte 0"),
    ],
)
def test_what_is_no_dump_is_told_and_the_others_are_read(tmp_path: Path, data: bytes, why: str) -> None:
    paths = written(tmp_path, dump(*DONE), dump(*DONE))
    Path(paths[0]).write_bytes(data)
    noun = read(paths)
    assert [each.rank for each in noun.record.ranks] == [1]
    assert why in noun.inconclusive[0].why


def test_no_dump_at_all_is_inconclusive(tmp_path: Path) -> None:
    (tmp_path / "dump0").write_bytes(b"")
    outcome = seen(read([str(tmp_path / "dump0")]))
    assert isinstance(outcome, Inconclusive)


# Recorded on this torch


def test_a_healthy_end_shows_nothing(recorded: dict[str, Path]) -> None:
    case = triaged([recorded["healthy"] / f"dump{rank}" for rank in (0, 1)])
    assert (case.findings, [each for each in case.outcomes if isinstance(each, Inconclusive)]) == ((), [])


@pytest.mark.parametrize(
    ("mode", "facts"),
    [
        ("missing", ["rank 1 has asked for nothing since all_reduce number 3"]),
        ("operation", ["number 4 of group 0 is all_gather of 8 Float on rank 0, all_reduce of 8 Float on rank 1"]),
    ],
)
@pytest.mark.parametrize("name", ["dump", "json"])
def test_recorded_dumps_show_what_happened(recorded: dict[str, Path], mode: str, facts: list[str], name: str) -> None:
    case = triaged([recorded[mode] / f"{name}{rank}" for rank in (0, 1)])
    (finding,) = case.findings
    assert finding.fault.slug == "collective-on-some-ranks"
    told = " ".join(f"{item.place} {item.fact}" for item in finding.evidence)
    assert [fact for fact in facts if fact not in told] == []
    assert ("recorded.py:" in told) == (name == "dump")


def test_measurements_are_json_and_say_where_each_rank_waits(recorded: dict[str, Path]) -> None:
    told = measurements(read([str(recorded["missing"] / f"dump{rank}") for rank in (0, 1)]))
    assert json.loads(json.dumps(told)) == told
    assert [(each["rank"], each["waits_in"], each["last"]) for each in told["each"]] == [
        (0, "all_reduce", {"0": 4}),
        (1, None, {"0": 3}),
    ]


def test_mutated_dumps_are_read_or_refused(tmp_path: Path, recorded: dict[str, Path]) -> None:
    seeds = [(recorded["missing"] / f"{name}{rank}").read_bytes() for name in ("dump", "json") for rank in (0, 1)]
    paths = []
    for number, data in enumerate(mutations(seeds, 2000)):
        (tmp_path / f"dump{number}").write_bytes(data)
        paths.append(str(tmp_path / f"dump{number}"))
    noun = read(paths)
    assert noun.record.ranks
    outcome = seen(noun)
    assert isinstance(outcome, Observed), outcome
    assert json.dumps(measurements(noun))


@pytest.mark.parametrize(
    "change",
    [
        {"process_group": None}, {"process_group": [[]]}, {"profiling_name": 5}, {"input_sizes": [[None, "x"], 3]},
        {"input_sizes": 7}, {"frames": [3, {"filename": [], "line": "x"}]}, {"collective_seq_id": 10**30},
        {"time_created_ns": "9" * 5000}, {"state": {}}, {"is_p2p": [1]}, {"pg_id": "a"}, {"input_dtypes": [[[]]]},
        {"profiling_name": "nccl:send 99999999999->2"},
    ],
    ids=str,
)  # fmt: skip
def test_fields_of_another_kind_are_brought_into_rows(change: dict[str, Any]) -> None:
    row = plain(dump({**entry(1), **change}), 10_000)["entries"]
    assert all(isinstance(each["seq"], int) and isinstance(each["path"], str) for each in row)
    json.dumps(row)
