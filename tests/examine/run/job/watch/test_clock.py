from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from torchtriage.examine.run.job.events import Start
from torchtriage.examine.run.job.job import Job
from torchtriage.examine.run.job.record.writer import Writer
from torchtriage.examine.run.job.watch import clock


class Optimizer:
    """Only its identity and its parameters matter to the clock."""

    def __init__(self, *parameters: object) -> None:
        self.param_groups = [{"params": parameters}]


def job_in(folder: Path, steps: int | None = None) -> Job:
    return Job(Writer(str(folder), lambda: 0, Start), steps)


def play(job: Job, events: str, optimizers: dict[str, Optimizer]) -> None:
    """b: a batch, f: a call of a root, w: a backward pass, a capital letter: that optimizer's turn."""
    clock = job.clock
    for event in events.replace(" ", ""):
        if event == "b":
            clock.fetching()
            clock.counts["batches"] += 1
        elif event in "fw":
            clock.settle()
            if clock.boundary != "optimizer":
                clock.passed({"f": "forward", "w": "backward"}[event])
        else:
            clock.turned(optimizers.setdefault(event, Optimizer()))


def written(job: Job, folder: Path) -> list[dict[str, Any]]:
    """What has been recorded so far; lines of steps wait for each other."""
    job.writer.flush()
    return [json.loads(line) for line in (folder / "rank0.jsonl").read_text().splitlines()]


def rows_of(folder: Path, events: str) -> list[dict[str, Any]]:
    job, optimizers = job_in(folder), {}
    play(job, events, optimizers)
    job.leave("exit")
    return written(job, folder)


LOOPS = [
    ("one optimizer", "bfwA" * 10, 10),
    ("tensors in memory", "fwA" * 10, 10),
    ("accumulation over 4 batches", "bfw bfw bfw bfwA" * 5, 5),
    ("two optimizers, one after the other", "bfwAB" * 10, 10),
    ("a generator and a discriminator", "bfwAfwB" * 10, 11),
    ("the same with tensors in memory", "fwAfwB" * 10, 11),
    ("five discriminator steps on one batch", "b fwA fwA fwA fwA fwA fwB" * 4, 4 + 5),
    ("a hundred optimizers inside the backward pass", ("bfw" + "".join(map(chr, range(256, 356)))) * 5, 5),
    ("a second phase with another optimizer", "bfwA" * 10 + "bfwB" * 40, 10 + 24),
    ("validation between epochs", ("bfwA" * 5 + "bf" * 20) * 2, 10),
]


@pytest.mark.parametrize(("events", "steps"), [loop[1:] for loop in LOOPS], ids=[loop[0] for loop in LOOPS])
def test_a_step_is_an_iteration_of_the_loop(tmp_path: Path, events: str, steps: int) -> None:
    rows = [row for row in rows_of(tmp_path, events) if row["kind"] == "step"]

    assert [row["step"] for row in rows] == list(range(steps))
    assert all("boundary" not in row for row in rows)


@pytest.mark.parametrize(
    ("events", "boundary", "steps"),
    [("bfw" * 20, "backward", 13), ("bf" * 20, "forward", 13), ("bfw" * 3, "backward", 1), ("f", "forward", 1)],
    ids=["the optimizer never steps", "inference", "three passes and no step", "one call"],
)
def test_a_loop_without_an_optimizer_has_steps_too(tmp_path: Path, events: str, boundary: str, steps: int) -> None:
    rows = [row for row in rows_of(tmp_path, events) if row["kind"] == "step"]

    assert [(row["step"], row["boundary"]) for row in rows] == [(step, boundary) for step in range(steps)]


def test_evaluation_before_training_does_not_shift_the_numbers_of_the_steps(tmp_path: Path) -> None:
    events = rows_of(tmp_path, "bf" * 12 + "bfwA" * 3)
    change = next(index for index, event in enumerate(events) if event["kind"] == "clock")

    assert events[change]["boundary"] == "optimizer"
    assert [event["step"] for event in events[change:] if event["kind"] == "step"] == [0, 1, 2]


def test_an_optimizer_that_is_made_anew_in_every_iteration_still_ends_each(tmp_path: Path) -> None:
    job = job_in(tmp_path)
    for _ in range(6):
        play(job, "bfwA", {})
    job.leave("exit")

    assert job.step == 6


def test_an_optimizer_of_the_same_parameters_takes_the_place_of_one_that_is_kept(tmp_path: Path) -> None:
    job, parameter = job_in(tmp_path), object()
    kept = {name: Optimizer(parameter) for name in "ABCDEF"}
    play(job, "".join(f"bfw{name}" for name in kept), kept)
    assert [row["batches"] for row in written(job, tmp_path) if row["kind"] == "step"] == [1] * 6


def test_nested_phases_count_once_in_the_inner_one(tmp_path: Path) -> None:
    clock = job_in(tmp_path).clock
    outer = clock.enter()
    inner = clock.enter()
    clock.leave(inner, "data")
    clock.book("probes", 10**12)
    clock.leave(outer, "forward")

    spent = clock._spent
    assert spent["probes"] == 10**12
    assert spent["forward"] < 0  # an hour of probes was booked within microseconds of forward
    assert sum(spent.values()) < 10**9


@given(depth=st.lists(st.sampled_from(["data", "forward", "backward", "optimizer"]), min_size=1, max_size=6))
def test_phases_never_add_up_to_more_than_the_step(tmp_path_factory: pytest.TempPathFactory, depth: list[str]) -> None:
    folder = tmp_path_factory.mktemp("clock")
    job = job_in(folder)
    job.writer.open()
    entered = [job.clock.enter() for _ in depth]
    for each, phase in zip(reversed(entered), depth, strict=True):
        job.clock.leave(each, phase)
    job.clock.turned(Optimizer())
    job.clock.settle()

    (row,) = [each for each in written(job, folder) if each["kind"] == "step"]
    assert sum(row[phase] for phase in ("data", "forward", "backward", "optimizer", "probes")) <= row["seconds"] + 1e-6


def test_steps_of_a_long_job_are_thinned(tmp_path: Path) -> None:
    job, optimizers = job_in(tmp_path), {}
    play(job, "bfwAb", optimizers)
    job.step = 20_001
    play(job, "fwA" * 20, optimizers)

    kept = written(job, tmp_path)
    assert [event["step"] for event in kept if event["kind"] == "step"] == [0, 20_010, 20_020]


def test_the_probes_leave_after_the_steps_that_were_asked_for(tmp_path: Path) -> None:
    job = job_in(tmp_path, steps=3)
    play(job, "bfwA" * 3, {})

    assert job.left
    assert '"why":"steps"' in (tmp_path / "rank0.jsonl").read_text()


def test_a_loss_that_is_not_finite_is_written_so_that_it_can_be_read(tmp_path: Path) -> None:
    job, optimizers = job_in(tmp_path), {"A": Optimizer()}
    for loss in (float("nan"), float("inf"), float("-inf"), 1.5):
        play(job, "bfw", optimizers)
        job.clock.lost(job.step, loss)
        play(job, "A", optimizers)

    rows = written(job, tmp_path)
    assert [str(row["loss"]) for row in rows if row["kind"] == "step"] == ["nan", "inf", "-inf", "1.5"]


def test_a_wall_clock_that_is_set_back_moves_no_step(
    watch: Callable[..., Job], events: Callable[..., list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = iter(range(10**18, 0, -(3600 * 10**9)))
    monkeypatch.setattr(clock, "time_ns", lambda: next(wall))
    job = watch()
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for _ in range(6):
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    job.leave("exit")

    rows = events("step")
    assert all(row["seconds"] > 0 for row in rows)
    assert all(after["start"] > before["start"] for before, after in itertools.pairwise(rows))
