from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from torchtriage.core.errors import TriageError
from torchtriage.core.evidence import Inconclusive, Observed, Place
from torchtriage.examine.detector import Sighting, detector, perform
from torchtriage.examine.run.job.events import Clock, Event, Step, from_row, to_row
from torchtriage.examine.run.reader.load import read
from torchtriage.examine.run.record import RankRecord, RunRecord

Row = dict[str, Any]
START: Row = {"kind": "start", "step": 0, "rank": 0, "world_size": 1}
END: Row = {"kind": "end", "step": 9, "why": "exit"}


def step(number: int, **fields: Any) -> Row:
    return {"kind": "step", "step": number, "seconds": 1.0, "batches": 1, "forwards": 1, **fields}


def write(folder: Path, name: str, *events: Row, tail: str = "") -> None:
    (folder / name).write_text("".join(json.dumps(event) + "\n" for event in events) + tail)


def numbers(steps: Iterable[Step]) -> list[int]:
    return [each.step for each in steps]


class Other(Event):
    """Of a kind that was made up."""

    seen: int = 0
    class_: str = ""


def test_ranks_are_read_by_number_and_events_by_kind(tmp_path: Path) -> None:
    for rank in (10, 2, 0):
        write(
            tmp_path,
            f"rank{rank}.jsonl",
            {**START, "rank": rank, "world_size": 3},
            step(0),
            {"kind": "other", "class": "Net"},
            END,
        )
    record = read(tmp_path)

    assert [rank.rank for rank in record.ranks] == [0, 2, 10]
    (other,) = record.ranks[0].all(Other)
    assert (other.class_, other.seen, other.step) == ("Net", 0, 0)


def test_what_is_written_is_what_is_read() -> None:
    told = Other(step=3, seen=4, class_="Net")
    assert to_row(told) == {"kind": "other", "step": 3, "seen": 4, "class": "Net"}
    assert vars(from_row(Other, json.loads(json.dumps(to_row(told))))) == vars(told)
    assert from_row(Other, {"kind": "other", "seen": None}).seen == 0


def test_a_field_that_a_line_lacks_is_an_error_only_where_it_has_no_default() -> None:
    with pytest.raises(AttributeError, match="boundary"):
        assert from_row(Clock, {"kind": "clock"}).boundary


def test_what_the_workers_of_a_rank_wrote_belongs_to_it(tmp_path: Path) -> None:
    for rank in (0, 1):
        write(tmp_path, f"rank{rank}.jsonl", {**START, "rank": rank, "world_size": 2}, END)
    write(tmp_path, "workers1.jsonl", {"kind": "other"}, tail='{"ki')

    assert [rank.has(Other) for rank in read(tmp_path).ranks] == [False, True]


@pytest.mark.parametrize("tail", ['{"kind":"step","st', '{"kind":"step","step":3}', "\x00\xff", "7\n[]\n\n", "NaN\n"])
def test_half_a_line_and_kinds_nobody_knows_are_passed_over(tmp_path: Path, tail: str) -> None:
    write(tmp_path, "rank0.jsonl", START, step(0), step(1), {"kind": "from the future"}, tail=tail)

    assert [row["kind"] for row in read(tmp_path).ranks[0].rows][:4] == [
        "start",
        "step",
        "step",
        "from the future",
    ]


def test_losses_that_are_not_finite_come_back_as_numbers(tmp_path: Path) -> None:
    (tmp_path / "rank0.jsonl").write_text(
        '{"kind":"step","step":0,"loss":NaN}\n{"kind":"step","step":1,"loss":-Infinity}\n'
    )

    assert [str(each.loss) for each in read(tmp_path).ranks[0].all(Step)] == ["nan", "-inf"]


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TriageError, match="no such folder"):
        read(tmp_path / "nowhere")


WARM_UP = [
    ("the first of a few", [step(n) for n in range(5)], [1, 2, 3, 4]),
    ("the first three of many", [step(n) for n in range(25)], list(range(3, 25))),
    ("a loader's start", [step(n, epochs=int(n in (0, 4))) for n in range(9)], [1, 2, 3, 5, 6, 7, 8]),
    ("a loader started in every step is the rule", [step(n, epochs=1) for n in range(5)], [1, 2, 3, 4]),
    ("a validation", [step(n, batches=40 if n == 3 else 1) for n in range(6)], [1, 2, 4, 5]),
    ("a validation without a loader", [step(n, forwards=40 if n == 3 else 1) for n in range(6)], [1, 2, 4, 5]),
    ("uneven accumulation is no validation", [step(n, batches=4 - n % 2) for n in range(6)], [1, 2, 3, 4, 5]),
    ("a row with nothing but its time", [{"kind": "step", "step": n, "seconds": 1.0} for n in range(4)], [1, 2, 3]),
    ("one step", [step(0)], []),
    ("none", [], []),
]


@pytest.mark.parametrize(("rows", "steady"), [case[1:] for case in WARM_UP], ids=[case[0] for case in WARM_UP])
def test_steady_steps_are_without_warm_up_and_validation(rows: list[Row], steady: list[int]) -> None:
    assert numbers(RankRecord(0, tuple(rows)).steps) == steady


def test_steps_at_a_lesser_boundary_give_way_to_those_of_an_optimizer() -> None:
    before = [step(n, boundary="forward") for n in range(4)]
    record = RankRecord(0, (*before, {"kind": "clock", "boundary": "optimizer"}, *(step(n) for n in range(3))))

    assert numbers(record.every_step) == [0, 1, 2]
    assert numbers(RankRecord(0, tuple(before)).every_step) == [0, 1, 2, 3]


def test_a_loss_that_came_late_stands_with_its_own_step() -> None:
    rows = (step(0, loss=None), step(1, loss=0.5, loss_step=0), step(2, loss=0.25, loss_step=1))

    assert [each.loss for each in RankRecord(0, rows).every_step] == [0.5, 0.25, None]


def unseen(folder: Path) -> dict[str, Inconclusive]:
    found = {item.detector: item for item in read(folder).inconclusive}
    assert all(item.unblock for item in found.values())
    return found


@pytest.mark.parametrize(
    ("notes", "detector", "words"),
    [
        ([], "run/attach", "no Python process"),
        (["attached"], "run/torch", "never imported torch"),
        (["attached", "attached", "torch"], "run/steps", "no batch, forward pass"),
        (["attached", "probes-failed"], "run/record", "no process of the job could be watched"),
    ],
)
def test_a_run_without_a_record_says_how_far_it_came(
    tmp_path: Path, notes: list[str], detector: str, words: str
) -> None:
    write(tmp_path, "processes.jsonl", *({"kind": kind, "pid": 1, "why": "because"} for kind in notes))

    assert read(tmp_path).ranks == ()
    assert words in unseen(tmp_path)[detector].why


def test_a_job_that_failed_before_it_imported_torch_is_told_so(tmp_path: Path) -> None:
    notes = ({"kind": "attached", "pid": 1}, {"kind": "ended", "code": 1, "signal": None})
    write(tmp_path, "processes.jsonl", *notes)

    assert unseen(tmp_path)["run/torch"].why == "the job ended with exit code 1 before it imported torch"


def test_a_script_that_another_python_failed_on_is_told_by_which_one(tmp_path: Path) -> None:
    ended = {"kind": "ended", "code": 1, "signal": None, "python": "/usr/bin/python", "own": "/venv/bin/python"}
    write(tmp_path, "processes.jsonl", {"kind": "attached", "pid": 1}, ended)
    told = unseen(tmp_path)["run/torch"]
    assert told.why.endswith("before it imported torch; it ran with /usr/bin/python, the python on PATH")
    assert "torchtriage run -- /venv/bin/python SCRIPT" in told.unblock


@pytest.mark.parametrize(
    ("events", "detector", "words"),
    [
        ([step(0), step(1)], "run/end", "after step 1"),
        (
            [step(0), {"kind": "error", "step": 1, "error": "ValueError", "path": "a.py", "line": 3}],
            "run/end",
            "a.py:3",
        ),
        ([END], "run/steps", "ended no step"),
        ([step(0), {"kind": "slow", "seconds": 2.7}], "run/record", "the job waited 2.7 s for the disk"),
        ([{"kind": "probe-off", "step": 4, "probe": "room/p", "why": "KeyError: 1"}, END], "run/room/p", "KeyError: 1"),
        ([step(0, allocated=10**6), END], "run/device-time", "host"),
        ([{**START, "world_size": 4}, END], "run/ranks", "3 of 4 ranks"),
        ([{**START, "world_size": 4}, {"kind": "wrapper"}, END], "run/communication", "other ranks"),
    ],
)
def test_what_a_rank_could_not_show_is_said(tmp_path: Path, events: list[Row], detector: str, words: str) -> None:
    write(tmp_path, "rank0.jsonl", START, *events)

    assert words in unseen(tmp_path)[detector].why


def test_a_whole_record_leaves_nothing_unsaid(tmp_path: Path) -> None:
    write(tmp_path, "rank0.jsonl", START, step(0), END)

    assert unseen(tmp_path) == {}


def test_of_two_processes_with_one_rank_the_busier_counts_and_it_is_said(tmp_path: Path) -> None:
    write(tmp_path, "rank0.jsonl", START, step(0), END)
    write(tmp_path, "rank0.77.jsonl", START, *(step(n) for n in range(5)), END)
    write(tmp_path, "rank0.78.jsonl", START, END)

    assert len(read(tmp_path).ranks[0].every_step) == 5
    assert "2 processes" in unseen(tmp_path)["run/processes"].why


@detector("run/of-a-rank")
def of_a_rank(record: RankRecord) -> Iterator[Sighting]:
    """A rank was there."""
    yield Sighting(Place(rank=record.rank))


@detector("run/of-the-run")
def of_the_run(record: RunRecord) -> Iterator[Sighting]:
    """A run was there."""
    yield Sighting(Place(), value=float(len(record.ranks)))


def test_detectors_look_at_ranks_or_at_the_whole_run() -> None:
    ranks, whole = perform([of_a_rank, of_the_run], RunRecord((RankRecord(0, ()), RankRecord(1, ()))))

    assert isinstance(ranks, Observed)
    assert [item.place.rank for item in ranks.evidence] == [0, 1]
    assert isinstance(whole, Observed)
    assert whole.evidence[0].value == 2


def test_no_detector_is_silent_over_a_run_that_left_nothing(tmp_path: Path) -> None:
    outcomes = list(perform([of_a_rank, of_the_run], read(tmp_path)))

    assert all(isinstance(outcome, Inconclusive) and "no Python process" in outcome.why for outcome in outcomes)


INTERRUPTED = {"kind": "error", "error": "KeyboardInterrupt"}


@pytest.mark.parametrize(
    ("events", "ended", "words"),
    [
        ([step(3)], {"code": 139, "signal": "SIGSEGV (139)"}, "after step 3: the job was ended by SIGSEGV (139)"),
        ([step(3)], {"code": 7, "signal": None}, "the job ended with exit code 7, by os._exit"),
        ([step(3)], {"code": 0, "signal": None}, "closed the file of its record"),
        ([step(3), {"kind": "end"}], {"code": 143, "signal": None}, "the job ended with exit code 143 at step 3"),
        ([step(3), {"kind": "end"}], {"code": 0, "signal": None}, None),
        ([step(3), INTERRUPTED], {"code": 130, "signal": None}, "stopped by Ctrl-C at step 3"),
    ],
)
def test_how_the_job_ended_is_what_its_launcher_saw(
    tmp_path: Path, events: list[Row], ended: Row, words: str | None
) -> None:
    write(tmp_path, "rank0.jsonl", *events)
    write(tmp_path, "processes.jsonl", {"kind": "ended", **ended})

    said = unseen(tmp_path).get("run/end")
    assert (said is None) == (words is None)
    assert said is None or (words and words in said.why)
