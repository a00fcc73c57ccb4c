"""When a device is asked how much of the time its kernels run, and what becomes of the answer."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from torchtriage.examine.run.job.accelerator import accelerator
from torchtriage.examine.run.job.events import Utilization
from torchtriage.examine.run.job.hooks import utilization
from torchtriage.examine.run.job.hooks.utilization import PERIOD, STEPS, Reading


class Session:
    """What is asked of a job, with what it was told."""

    placing = "machinery/utilization"

    def __init__(self) -> None:
        self.events: list[Utilization] = []
        self.withdrawn: list[str] = []

    def record(self, event: Utilization) -> None:
        self.events.append(event)

    def withdraw(self, probe: str) -> None:
        self.withdrawn.append(probe)


class Device:
    """A device that tells SHARE in percent; None: it cannot, since a package is missing."""

    def __init__(self, share: int | None = 40) -> None:
        self.share, self.asked = share, 0

    def utilization(self) -> int:
        self.asked += 1
        if self.share is None:
            raise ModuleNotFoundError("pynvml does not seem to be installed or it can't be imported.")
        return self.share

    def mem_get_info(self) -> tuple[int, int]:
        return 600, 1000

    def memory_stats(self) -> dict[str, int]:
        return {"reserved_bytes.all.current": 300}


Reading_ = Callable[..., tuple[Session, Reading, Device]]


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Reading_:
    def made(share: int | None = 40, *, clock: Callable[[], int] | None = None) -> tuple[Session, Reading, Device]:
        session, device = Session(), Device(share)
        accelerator.forget()
        monkeypatch.setattr(accelerator, "_kind", "sim")
        monkeypatch.setattr(accelerator, "_module", device)
        if clock is not None:
            monkeypatch.setattr(accelerator, "clock", clock)
        else:
            times = iter(range(PERIOD, 1000 * PERIOD, PERIOD))
            monkeypatch.setattr(utilization, "now", lambda: next(times))
        job: Any = session
        return session, Reading(job, session.placing), device

    return made


def test_a_device_is_asked_after_so_many_steps(reading: Reading_) -> None:
    session, each, device = reading()
    for step in range(3 * STEPS + 1):
        each.iterated(step)
    assert device.asked == 3
    assert [(told.at, told.since, told.share) for told in session.events] == [
        (STEPS, STEPS, 0.4), (2 * STEPS, STEPS, 0.4), (3 * STEPS, STEPS, 0.4)
    ]  # fmt: skip


def test_steps_that_are_numbered_anew_are_asked_about_at_once(reading: Reading_) -> None:
    """As in a game that has called its model a thousand times before the optimizer steps."""
    session, each, _ = reading()
    for step in [*range(1001), *range(2 * STEPS + 1)]:
        each.iterated(step)
    assert [told.at for told in session.events][-2:] == [STEPS, 2 * STEPS]


def test_memory_that_is_neither_free_nor_ours_is_that_of_others(reading: Reading_) -> None:
    session, each, _ = reading()
    each.iterated(STEPS)
    assert session.events[0].elsewhere == 1000 - 600 - 300


def test_it_is_asked_no_more_often_than_its_driver_counts(reading: Reading_, monkeypatch: pytest.MonkeyPatch) -> None:
    _, each, device = reading()
    monkeypatch.setattr(utilization, "now", lambda: PERIOD)
    for step in range(10 * STEPS):
        each.iterated(step)
    assert device.asked == 1


def test_a_clock_of_its_own_is_asked_by_steps_alone(reading: Reading_) -> None:
    _, each, device = reading(clock=lambda: 0)
    for step in range(3 * STEPS + 1):
        each.iterated(step)
    assert device.asked == 3


def test_an_answer_that_holds_an_evaluation_is_dropped(reading: Reading_) -> None:
    session, each, _ = reading()
    each.aside()
    each.iterated(STEPS)
    each.iterated(2 * STEPS)
    assert [told.at for told in session.events] == [2 * STEPS]


def test_a_device_that_does_not_tell_is_asked_once(reading: Reading_) -> None:
    session, each, device = reading(None)
    each.iterated(STEPS)
    each.iterated(2 * STEPS)
    assert (device.asked, session.events) == (1, [])
    assert session.withdrawn[0] == session.placing


@pytest.mark.parametrize(("clock", "asked"), [(lambda: 0, 1), (None, 0)], ids=["its own", "the machine's"])
def test_a_simulated_device_is_asked_in_its_own_time_only(
    clock: Callable[[], int] | None, asked: int, reading: Reading_
) -> None:
    _, each, device = reading(clock=clock)
    vars(device)["is_simulated"] = True
    each.iterated(STEPS)
    assert device.asked == asked


def test_a_job_on_the_host_is_not_asked() -> None:
    accelerator.forget()
    session: Any = Session()
    Reading(session, "").iterated(STEPS)
    assert session.events == []


def test_it_listens_to_steps_and_evaluations() -> None:
    heard: list[str] = []
    job: Any = SimpleNamespace(
        placing="machinery/utilization",
        sampled=lambda: None,
        listen=lambda *each: heard.extend(e.__name__ for e in each),
    )
    utilization.place(job)
    assert heard == ["aside", "iterated"]
