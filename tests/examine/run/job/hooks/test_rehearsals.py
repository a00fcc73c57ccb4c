"""Which steps a rehearsal counts, and what is not counted, of a device that stands for the simulated one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from torchtriage.examine.run.job.events import RehearsedPeak, RehearsedSteps
from torchtriage.examine.run.job.hooks import rehearsals
from torchtriage.examine.run.job.hooks.rehearsals import COUNTED, Watch


class Device:
    """Its steps are counted from the start; every step has one kernel."""

    card = SimpleNamespace(name="16GiB of memory", memory=2**34, count=1)
    absences = SimpleNamespace(found=[])
    native = SimpleNamespace(pause_records=bool)

    def __init__(self) -> None:
        self.steps, self.counts, self.asides = 0, True, 0

    def step(self) -> int:
        self.steps += 1
        return self.steps

    def counted(self, first: int, ended: int) -> Any:
        self.window = first, ended
        return SimpleNamespace(steps=ended - first, kernels=ended - first, nanoseconds=0, waits=[], transfers=[])

    def stop_counting(self) -> None:
        self.counts = False

    def count_again(self) -> None:
        self.counts = True

    def peaks(self) -> list[Any]:
        return [SimpleNamespace(file="", line=0, step=self.steps - 1, holders={}, device=0, bytes=1, reserved=1)]

    def aside(self, call: Callable[..., Any]) -> Callable[..., Any]:
        self.asides += 1
        return call


class Session:
    def __init__(self) -> None:
        self.events: list[Any] = []
        self.roots: list[Any] = []
        self.rest = SimpleNamespace(first=1024)
        self.late = SimpleNamespace(read=lambda *_: None, read_all=lambda *_: None)
        self.fire = lambda *_: None

    def record(self, event: Any) -> None:
        self.events.append(event)

    def listen(self, *_: object) -> None: ...

    def undo(self, _: object) -> None: ...

    def computes_nothing(self) -> None: ...


@pytest.fixture
def watch() -> Watch:
    job: Any = Session()
    return Watch(Device(), job)


def test_a_peak_is_told_with_the_step_of_the_job(watch: Watch) -> None:
    for step in range(COUNTED + 4):
        watch.iterated(step)
    watch.tell()
    peaks = [each for each in watch.job.events if isinstance(each, RehearsedPeak)]  # type: ignore[attr-defined]
    assert peaks[-1].at == COUNTED + 3


def test_steps_are_those_of_the_optimizer_once_it_steps(watch: Watch) -> None:
    """A game that calls its model a hundred times before it learns has had steps of calls until then."""
    for step in range(100):
        watch.iterated(step)
    assert not watch.rehearsal.counts
    for step in range(6):
        watch.iterated(step)
    assert watch.rehearsal.counts
    watch.tell()
    (*_, steps) = [each for each in watch.job.events if isinstance(each, RehearsedSteps)]  # type: ignore[attr-defined]
    (*_, peak) = [each for each in watch.job.events if isinstance(each, RehearsedPeak)]  # type: ignore[attr-defined]
    assert (steps.steps, watch.rehearsal.window, peak.at) == (3, (103, 106), 5)


def test_no_step_rests_and_what_the_watch_reads_is_not_counted() -> None:
    job: Any = Session()
    device = Device()
    rehearsals.place(device, job)
    assert job.rest.first > 10**9
    assert device.asides == 1
    assert job.pause is device.native.pause_records
