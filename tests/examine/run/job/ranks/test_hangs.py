"""The thread that notices that nothing moves, driven by hand on a clock of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from torchtriage.examine.run.job import Job, begin
from torchtriage.examine.run.job.ranks import hangs, position

AFTER = 8.0


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(hangs.time, "monotonic", made.monotonic)
    monkeypatch.setattr(position.time, "monotonic", made.monotonic)
    return made


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """One that has taken a step, whose thread does not run: the tests wake it."""
    made = begin(str(tmp_path), [], hang_after=AFTER)
    made.hangs.end()
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    made.clock.settle()
    yield made
    made.leave("test")
    made.tidy()


def pass_by(job: Job, clock: Clock, seconds: float, every: float = 1.0) -> None:
    for _ in range(int(seconds / every)):
        clock.now += every
        job.hangs._wake()


def told(folder: Path, *kinds: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "rank0.jsonl").read_text().splitlines()]
    return [each for each in lines if each["kind"] in kinds]


def noted(folder: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in (folder / "processes.jsonl").read_text().splitlines()]


def test_a_stand_still_is_told_once_after_two_looks_and_so_is_its_end(job: Job, clock: Clock, tmp_path: Path) -> None:
    pass_by(job, clock, AFTER + 4)
    assert told(tmp_path, "hang") == []

    pass_by(job, clock, 5 * AFTER)
    (event,) = told(tmp_path, "hang")
    assert (event["why"], event["state"]) == ("hang-after", "still")
    assert Path(event["stack"][0][0]).name == Path(__file__).name
    assert noted(tmp_path) == ["watches", "hang"]

    job.step += 1
    pass_by(job, clock, 1)
    assert [event["kind"] for event in told(tmp_path, "hang", "moved")] == ["hang", "moved"]
    assert noted(tmp_path) == ["watches", "hang", "moved"]


def test_one_that_works_is_told_as_working_and_not_as_standing(
    job: Job, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(position, "_cpu", lambda _thread: clock.now)
    pass_by(job, clock, 10 * AFTER)

    assert [event["state"] for event in told(tmp_path, "hang")] == ["busy"]
    assert noted(tmp_path) == ["watches"]


def test_a_process_that_was_stopped_as_a_whole_has_not_stood_still(job: Job, clock: Clock, tmp_path: Path) -> None:
    pass_by(job, clock, 3)
    pass_by(job, clock, 20_000, every=10_000)

    assert told(tmp_path, "hang") == []


def test_one_who_asks_is_answered_once(job: Job, clock: Clock, tmp_path: Path) -> None:
    pass_by(job, clock, 2)
    (tmp_path / hangs.ASKED).touch()
    pass_by(job, clock, 3)

    assert [event["why"] for event in told(tmp_path, "hang")] == ["signal"]
    assert noted(tmp_path) == ["watches", "looked"]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_the_thread_is_not_there_in_a_child_and_comes_back_in_the_parent(tmp_path: Path) -> None:
    job = begin(str(tmp_path), [], hang_after=1000.0)
    assert job.hangs.running

    child = os.fork()
    if not child:
        os._exit(int(job.hangs.running))
    assert os.waitpid(child, 0)[1] == 0
    assert job.hangs.running

    job.leave("test")
    job.tidy()
    assert not job.hangs.running
