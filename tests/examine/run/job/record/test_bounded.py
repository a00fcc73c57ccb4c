"""The record of a job that runs for a week stays small, and its readers know that its later steps are sparse."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from records import event

from torchtriage.examine.run.job.events import End, Start
from torchtriage.examine.run.job.record import writer
from torchtriage.examine.run.job.record.writer import LINES, ROOM, Writer, kept
from torchtriage.examine.run.job.watch import clock
from torchtriage.examine.run.job.watch.clock import DENSE, Clock
from torchtriage.examine.run.job.watch.rest import Rest
from torchtriage.examine.run.measures.figures import measurements
from torchtriage.examine.run.reader import load
from torchtriage.examine.run.record import RankRecord, RunRecord

WEEK = 7 * 24 * 3600 * 100  # steps of 10 ms
MB = 10**6


def numbers(end: int, dense: int) -> Iterator[int]:
    """What `kept` keeps of the numbers below END, without asking about each of them."""
    yield from range(min(dense, end))
    begin, stride = dense, 10
    while begin < end:
        yield from range(begin, min(10 * begin, end), stride)
        begin, stride = 10 * begin, 10 * stride


def longest_row(monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes of a step's line with every field that it can have, at the end of a week, on a large device."""
    memory = dict.fromkeys(("allocated", "peak", "reserved"), 10**11)
    monkeypatch.setattr(clock, "_allocated", lambda: memory)
    rest = Rest(SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
    rest._steps, rest._nanoseconds, rest._epochs = 63, 10**12, 63
    rest._losses = [-1.2345678901234567e-300] * 63
    job = SimpleNamespace(step=WEEK, listeners=SimpleNamespace(only="room/probe"))
    made = Clock(job, rest, lambda _why: None)  # type: ignore[arg-type]
    made.resident, made.boundary = (lambda: 10**12), "backward"
    made.lost(WEEK - 1, -1.2345678901234567e-300)
    made.scaled(2.0**-149 / 3)
    made.counts = dict.fromkeys(made.counts, 10**6)
    return len(made._row(clock.now() + 10**15, is_dense=False)) + len("{}\n")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A disk that keeps only how many bytes it was given."""
    bytes_of: list[int] = []

    def write(_file: int, data: bytes) -> int:
        bytes_of.append(len(data))
        return len(data)

    monkeypatch.setattr(writer.os, "write", write)
    return bytes_of


def opened(folder: Path) -> Writer:
    made = Writer(str(folder), lambda: 0, lambda: Start(pid=os.getpid(), world_size=1))
    made.open()
    return made


@pytest.mark.parametrize("dense", [10, LINES, DENSE])
def test_the_law_keeps_all_at_first_and_then_a_tenth_of_ten_times_as_many(dense: int) -> None:
    end = 30 * dense

    assert [number for number in range(end) if kept(number, dense)] == [
        number for number in numbers(end, dense) if kept(number, dense)
    ]
    assert all(kept(number, dense) for number in range(dense))
    assert sum(kept(number, dense) for number in range(10 * dense)) <= 1.9 * dense


def test_the_steps_of_a_week_fit_into_a_quarter_of_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sum(1 for _ in numbers(WEEK, DENSE))

    assert rows < 100_000
    assert rows * longest_row(monkeypatch) < 50 * MB


def test_lines_of_one_kind_are_thinned_and_said_to_be(tmp_path: Path, counted: list[int]) -> None:
    made = opened(tmp_path)
    for number in range(100 * LINES):
        made.write(event("skip", step=number, path="a" * 200))

    assert 2.7 * LINES < len(counted) < 2.9 * LINES
    ten_kinds_in_a_week = 10 * sum(1 for _ in numbers(WEEK, LINES)) * max(counted)
    assert ten_kinds_in_a_week < 50 * MB


def test_whatever_probes_write_the_file_stays_below_two_hundred_megabytes(tmp_path: Path, counted: list[int]) -> None:
    made = opened(tmp_path)
    for number in range(3000):
        made.write(event(f"kind {number}", step=number, text="x" * 10**5))
    for number in range(100):
        made.put(f'{{"kind":"step","step":{number}}}', number * 10**9)
    made.write(End(step=3000, why="exit"))

    assert ROOM < sum(counted) < 200 * MB
    assert not made.off


def test_what_was_left_out_is_inconclusive_and_the_end_is_always_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "ROOM", 600)
    monkeypatch.setattr(writer, "LINES", 3)
    made = opened(tmp_path)
    for number in range(20):
        made.write(event("skip", step=number))
    made.write(End(step=20, why="exit"))

    events = [json.loads(line) for line in (tmp_path / "rank0.jsonl").read_text().splitlines()]
    assert [event.get("step") for event in events if event["kind"] == "skip"] == [0, 1, 2, 10]
    assert events[-1]["kind"] == "end"
    said = [item.why for item in load.read(tmp_path).inconclusive if item.detector == "run/record"]
    assert said == [
        "rank 0 had more than 3 lines of the kind skip: of those that came later, ever fewer were written",
    ]
    for number in range(100):
        made.put(f'{{"kind":"step","step":{number},"seconds":0.1}}', number * 10**9)
    assert (
        "bytes: what came later" in [i.why for i in load.read(tmp_path).inconclusive if i.detector == "run/record"][-1]
    )


def sparse(last: int, **each: Any) -> RankRecord:
    rows = [
        {"kind": "step", "step": step, "seconds": 0.1, "batches": 1, "forwards": 1}
        | {name: value(step) for name, value in each.items()}
        for step in numbers(last, 100)
        if kept(step, 100)
    ]
    return RankRecord(0, ({"kind": "start"}, *rows, {"kind": "end", "step": last, "why": "exit"}))


def test_steady_steps_are_evenly_spaced_so_that_the_dense_start_does_not_outweigh_the_rest() -> None:
    rank = sparse(9_000, data=lambda step: 0.09 if step < 100 else 0.01)
    measured = measurements(RunRecord((rank,)))

    assert {after.step - before.step for before, after in zip(rank.steps, rank.steps[1:])} == {100}  # noqa: B905
    assert measured["shares"]["data"] == pytest.approx(0.1, abs=0.02)
    assert measured["steps"] == 9_000


def test_steps_among_which_others_rested_are_spaced_as_evenly_as_there_are_enough_of_them() -> None:
    steps = [*range(1024), *range(1024, 9000, 16)]
    rows = tuple({"kind": "step", "step": step, "seconds": 0.1, "batches": 1, "forwards": 1} for step in steps)

    def apart(rank: RankRecord) -> set[int]:
        return {after.step - before.step for before, after in zip(rank.steps, rank.steps[1:])}  # noqa: B905

    assert apart(RankRecord(0, rows)) == {16}
    late = [*rows[:1024], *({**rows[0], "step": step} for step in range(1024, 4000, 64))]
    assert min(apart(RankRecord(0, tuple(late)))) > 48  # few of many rows, and three quarters of the time
    assert len(RankRecord(0, rows[:1030]).steps) == 1027


def test_a_loss_that_arrived_late_stays_when_its_own_step_is_not_there() -> None:
    rank = sparse(2_000, loss=float, loss_step=lambda step: step - 1)
    losses = {row.step: row.loss for row in rank.every_step}

    assert losses[50] == 51.0  # that of step 50 came with step 51
    assert losses[1500] == 1500.0
