"""Where a step spends its time on the device's own timeline: an event at each boundary, read once it is passed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..accelerator import accelerator
from ..events import Device, replace

if TYPE_CHECKING:
    from ..job import Job

WAITING = 16  # steps that may be under way on the device at most; beyond, steps are left out
ENDING = {  # which phase of a step has ended when an event of the job comes
    "batch": "data",
    "forward": "transfer",
    "forwarded": "forward",
    "backward": "other",
    "backwarded": "backward",
    "stepping": "other",
    "stepped": "optimizer",
}


def place(job: Job) -> None:
    """In watched steps, records when the device reaches each boundary; nothing waits for the device.

    The time from the last step's end to a batch's arrival is that of waiting for data, as far as the device had run
    out of work; from there to the forward pass, that of the copies; gaps within a phase belong to the phase.
    """
    job.sampled()
    timeline = Timeline(job)
    for event, phase in ENDING.items():
        job.on(event, lambda *_, phase=phase: timeline.passed(phase))
    job.listen(timeline.iterated)
    job.on("watching", timeline.restart)
    job.on("ending", timeline.settle)


class Timeline:
    """The boundaries of the current step, and the steps whose last boundary the device has not reached yet."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.marks: list[tuple[str, Any]] = []
        self.start: Any = None
        self.waiting: list[tuple[int, Any, list[tuple[str, Any]]]] = []

    def restart(self) -> None:
        """A window begins: nobody has seen where its first step did."""
        self.start, self.marks = None, []

    def passed(self, phase: str) -> None:
        if accelerator.kind and (mark := accelerator.mark(timed=True)) is not None:
            self.marks.append((phase, mark))

    def iterated(self, step: int) -> None:
        marks, self.marks = self.marks, []
        if self.start is not None and marks and len(self.waiting) < WAITING:
            self.waiting.append((step, self.start, marks))
        self.start = marks[-1][1] if marks else None
        self.settle()

    def settle(self) -> None:
        """Writes down the steps that the device has ended."""
        while self.waiting and self.waiting[0][2][-1][1].query():
            step, before, marks = self.waiting.pop(0)
            spent: dict[str, float] = {}
            fetched = any(phase == "data" for phase, _ in marks)
            for phase, mark in marks:
                told = phase if fetched or phase != "transfer" else "other"
                spent[told] = spent.get(told, 0.0) + before.elapsed_time(mark) / 1e3
                before = mark
            self.job.record(replace(Device(at=step, seconds=sum(spent.values())), **spent))
