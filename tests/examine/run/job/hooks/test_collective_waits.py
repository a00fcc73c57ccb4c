"""What is marked of a collective that a device waits for, and what is left alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from torchtriage.examine.run.job.accelerator import accelerator
from torchtriage.examine.run.job.events import Device, to_row
from torchtriage.examine.run.job.hooks import collective_waits
from torchtriage.examine.run.job.hooks.collective_waits import CollectiveWaits, Wait
from torchtriage.examine.run.job.hooks.device import Timeline


class Mark:
    """An event of a device that the host is never ahead of, in milliseconds."""

    now = 0.0

    def __init__(self, enable_timing: bool) -> None:
        self.at = -1.0

    def record(self) -> None:
        self.at = Mark.now

    def query(self) -> bool:
        return True

    def elapsed_time(self, later: Mark) -> float:
        return later.at - self.at


class Told:
    placing = "machinery/device"
    place = staticmethod(lambda *_: None)

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self.governor = SimpleNamespace(booked=0, is_quiet=False)

    def record(self, event: Device) -> None:
        self.lines.append(to_row(event))


class Seen:
    """The part of a job that marks need."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.told, self.stream = Told(), "computing"
        module = SimpleNamespace(Event=Mark, current_stream=lambda: self.stream)
        monkeypatch.setattr(accelerator, "_kind", "cuda")
        monkeypatch.setattr(accelerator, "_module", module)
        monkeypatch.setattr(accelerator, "clock", lambda: round(Mark.now * 1e6))
        monkeypatch.setattr(Mark, "now", 0.0)
        self.timeline = Timeline(self.told)  # type: ignore[arg-type]
        self.timeline.stream = self.stream
        self.ended: list[bool] = []
        waits: Any = SimpleNamespace(end_idle=lambda: self.ended.append(True))
        self.waits = CollectiveWaits(self.told, self.timeline, waits)  # type: ignore[arg-type]

    def call(self, name: str, milliseconds: float, *arguments: Any, **options: Any) -> None:
        def original(*_: Any, **__: Any) -> None:
            Mark.now += milliseconds

        self.waits._wrap(name)(original)(*arguments, **options)

    def play(self, *calls: tuple[str, float, str]) -> dict[str, Any] | None:
        """A step whose backward takes 20 ms and the CALLS, each in a stream; what is written down of it."""
        self.timeline.passed("optimizer")
        self.timeline.iterated(0)
        Mark.now += 20
        for name, milliseconds, stream in calls:
            self.stream = stream
            self.call(name, milliseconds, torch.ones(3))
        self.stream = "computing"
        self.timeline.passed("backward")
        self.timeline.iterated(1)
        return self.told.lines[0] if self.told.lines else None


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


def test_a_wait_is_taken_out_of_the_phase_that_it_interrupts(seen: Seen) -> None:
    told = seen.play(("all_reduce", 5, "computing"), ("wait", 2, "computing"))
    assert told is not None
    assert (told["backward"], told["communication"]) == (pytest.approx(0.02), pytest.approx(0.007))
    assert [(*each[2:4], each[4]) for each in told["waits"]] == [
        ("all_reduce", 12, pytest.approx(0.005)),
        ("wait", 12, pytest.approx(0.002)),
    ]
    assert told["waits"][0][0].endswith("test_collective_waits.py")
    assert seen.ended == [True, True]


def test_what_another_stream_waits_for_is_no_wait_of_the_one_that_computes(seen: Seen) -> None:
    told = seen.play(("all_gather_into_tensor", 5, "prefetching"))
    assert told is not None
    assert "waits" not in told
    assert told["backward"] == pytest.approx(0.025)


def test_a_call_that_returns_a_handle_waits_for_nothing(seen: Seen) -> None:
    seen.call("all_reduce", 5, torch.ones(3), async_op=True)
    assert not seen.timeline.marks


def test_a_call_that_is_made_of_others_is_one_wait(seen: Seen) -> None:
    inner = seen.waits._wrap("wait")(lambda: None)
    seen.waits._wrap("all_reduce")(inner)()
    assert [each.wait.operation for each in seen.timeline.marks if each.wait] == ["all_reduce"]


def test_a_collective_that_fails_leaves_its_error_to_the_job(seen: Seen) -> None:
    def fail() -> None:
        raise RuntimeError("no rank is there")

    with pytest.raises(RuntimeError, match="no rank is there"):
        seen.waits._wrap("all_reduce")(fail)()
    assert not seen.waits.is_inside


def test_a_step_with_too_many_waits_is_not_told(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collective_waits, "MOST", 3)
    assert seen.play(*[("all_reduce", 1.0, "computing")] * 4) is None


def wrapper(averages: bool) -> Any:
    return type("Wrapper", (), {"require_backward_grad_sync": averages})()


@pytest.mark.parametrize(("averages", "waits"), [(True, [("backward", 0)]), (False, [])])
def test_the_end_of_a_backward_pass_is_a_wait_where_it_averages(seen: Seen, averages: bool, waits: list[Any]) -> None:
    kept = wrapper(averages)
    seen.waits.wrappers.add(kept)
    weight = torch.ones(2, requires_grad=True)
    loss = weight.sum()
    seen.waits.begin_backward((loss,))
    loss.backward()
    seen.waits.pass_boundary("backwarded")
    assert [(each.wait.operation, each.wait.bytes) for each in seen.timeline.marks if each.wait] == waits
    assert weight.grad is not None
    assert not loss._backward_hooks


def test_a_backward_pass_that_failed_leaves_no_hook_to_the_next(seen: Seen) -> None:
    kept = wrapper(averages=True)
    seen.waits.wrappers.add(kept)
    first, second = (torch.ones(2, requires_grad=True).sum() for _ in range(2))
    seen.waits.begin_backward((first,))
    seen.waits.begin_backward((second,))
    assert not first._backward_hooks
    assert second._backward_hooks


def test_a_wait_is_told_with_bytes_of_its_first_tensor() -> None:
    assert collective_waits._bytes((None, torch.ones(3, dtype=torch.float16), torch.ones(9))) == 6
    assert collective_waits._bytes(()) == 0
    assert Wait("", 0, "barrier", 0).bytes == 0
