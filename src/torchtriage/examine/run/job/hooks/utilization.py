"""How much of the time a kernel runs on the device, as the device itself tells it now and then."""

from __future__ import annotations

from time import perf_counter_ns as now
from typing import TYPE_CHECKING

from ..accelerator import accelerator
from ..events import Utilization

if TYPE_CHECKING:
    from ..job import Job

STEPS = 16  # between two readings, at least
PERIOD = 250_000_000  # nanoseconds between two, at least: a reading is a call of the driver, of a past period


def place(job: Job) -> None:
    """In watched steps, asks the device; an answer that holds an evaluation is dropped."""
    job.sampled()
    reading = Reading(job, job.placing)
    job.listen(reading.aside, reading.iterated)


class Reading:
    """When the device was asked last, and whether an evaluation has run since."""

    def __init__(self, job: Job, probe: str) -> None:
        self.job, self.probe = job, probe
        self.step, self.at = 0, 0
        self.is_mixed = False

    def aside(self, *_: object) -> None:
        self.is_mixed = True

    def iterated(self, step: int) -> None:
        """A step has ended; steps may be numbered from 0 again."""
        self.step = min(self.step, step)
        if step - self.step < STEPS or not accelerator.kind:
            return
        at = 0 if accelerator.has_own_clock else now()
        if at and at - self.at < PERIOD:
            return
        since, self.step, self.at = step - self.step, step, at
        is_mixed, self.is_mixed = self.is_mixed, False
        share = accelerator.utilization()
        if share is None:
            self.job.withdraw(self.probe)
        elif not is_mixed:
            space, held = accelerator.space(), accelerator.memory().get("reserved", 0)
            elsewhere = max(space.get("capacity", 0) - space.get("free", space.get("capacity", 0)) - held, 0)
            self.job.record(Utilization(at=step, since=since, share=share, elsewhere=elsewhere))
