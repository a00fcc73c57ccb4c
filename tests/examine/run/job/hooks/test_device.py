"""The device's timeline, told of events made by hand: nothing is waited for, and phases end where they end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from torchtriage.examine.run.job.accelerator import accelerator
from torchtriage.examine.run.job.events import Device, to_row
from torchtriage.examine.run.job.hooks.device import WAITING, Timeline


class Mark:
    """An event of CUDA that the device reaches at a time of our choice, in milliseconds.

    ahead: of the device, so much earlier the host asks for it.
    """

    ahead = 0.0

    now = 0.0
    reached = float("inf")

    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing
        self.at = -1.0

    def record(self) -> None:
        self.at = Mark.now

    def query(self) -> bool:
        return self.at <= Mark.reached

    def elapsed_time(self, later: Mark) -> float:
        return later.at - self.at


class Told:
    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.governor = SimpleNamespace(booked=0, is_quiet=False)

    def record(self, event: Device) -> None:
        self.lines.append(to_row(event))


@pytest.fixture(autouse=True)
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "_kind", "cuda")
    monkeypatch.setattr(accelerator, "_module", SimpleNamespace(Event=Mark))
    monkeypatch.setattr(Mark, "reached", float("inf"))
    monkeypatch.setattr(Mark, "now", 0.0)
    monkeypatch.setattr(Mark, "ahead", 0.0)
    monkeypatch.setattr(accelerator, "clock", lambda: round((Mark.now - Mark.ahead) * 1e6))


STEP = [("data", 5), ("transfer", 1), ("forward", 10), ("other", 1), ("backward", 20), ("other", 0), ("optimizer", 3)]


def play(timeline: Timeline, step: int, phases: list[tuple[str, float]] = STEP) -> None:
    for phase, milliseconds in phases:
        Mark.now += milliseconds
        timeline.passed(phase)
    timeline.iterated(step)


def test_a_step_is_told_from_the_end_of_the_last_one_by_phase() -> None:
    told = Told()
    timeline = Timeline(told)  # type: ignore[arg-type]
    play(timeline, 0)
    play(timeline, 1)
    (line,) = told.lines
    assert line == pytest.approx(
        {"kind": "device", "at": 1, "seconds": 0.04, "data": 0.005, "transfer": 0.001, "forward": 0.01, "other": 0.001,
         "backward": 0.02, "optimizer": 0.003, "busy": 0.0, "host_paced": 0.034, "overhead": 0.0, "is_quiet": False}
    )  # fmt: skip


def test_a_step_that_the_device_has_not_ended_is_told_later() -> None:
    told = Told()
    timeline = Timeline(told)  # type: ignore[arg-type]
    Mark.reached = 0.0
    for step in range(WAITING + 5):
        play(timeline, step)
    assert told.lines == []
    Mark.reached = float("inf")
    timeline.settle()
    assert [line["at"] for line in told.lines] == list(range(1, WAITING + 1))


def test_without_a_loader_the_time_before_the_forward_pass_is_no_transfer() -> None:
    told = Told()
    timeline = Timeline(told)  # type: ignore[arg-type]
    for step in range(2):
        play(timeline, step, STEP[1:])
    assert "transfer" not in told.lines[0]
    assert told.lines[0]["other"] == pytest.approx(0.002)


def test_a_new_window_has_no_beginning_and_a_captured_stream_no_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    timeline = Timeline(told)  # type: ignore[arg-type]
    play(timeline, 0)
    timeline.restart()
    play(timeline, 9)
    assert told.lines == []
    monkeypatch.setattr(accelerator, "is_capturing", lambda: True)
    play(timeline, 10)
    assert told.lines == []


def test_a_device_that_is_behind_all_the_time_is_busy_all_the_time() -> None:
    told = Told()
    timeline = Timeline(told)  # type: ignore[arg-type]
    Mark.reached = 0.0
    for step in range(3):
        play(timeline, step)
    Mark.reached = float("inf")
    timeline.settle()
    assert [line["busy"] for line in told.lines] == pytest.approx([0.034, 0.034])
    assert [line["host_paced"] for line in told.lines] == [0.0, 0.0]


def test_a_device_that_falls_behind_within_a_phase_is_busy_for_as_long_as_it_is_behind() -> None:
    """The host leaves backward 14 ms before the device has done 20 ms of work, and so it needs at least these 14 ms."""
    told = Told()
    timeline = Timeline(told)  # type: ignore[arg-type]
    play(timeline, 0)
    for phase, milliseconds in STEP:
        Mark.now += milliseconds
        Mark.ahead = {"backward": 14.0, "optimizer": 1.0}.get(phase, Mark.ahead)
        Mark.reached = Mark.now - 21 if phase == "backward" else float("inf") if Mark.ahead < 14 else Mark.now - 1
        timeline.passed(phase)
    Mark.reached = float("inf")
    timeline.iterated(1)
    (line,) = told.lines
    assert 0.014 <= line["busy"] <= 0.023


@pytest.mark.parametrize(("has_own_clock", "overhead"), [(False, 0.003), (True, 0.0)])
def test_what_probes_take_stands_beside_a_step(
    has_own_clock: bool, overhead: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a device with a clock of its own what the host does takes no time."""
    monkeypatch.setattr(type(accelerator), "has_own_clock", has_own_clock)
    told = Told()
    timeline = Timeline(told)  # type: ignore[arg-type]
    for step in range(2):
        told.governor.booked += 3_000_000
        play(timeline, step)
    assert told.lines[0]["overhead"] == overhead
