"""What a run writes down about allocations that failed: the line, and who held the device's memory."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .census import count_holders
from .events import OutOfMemory

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

    from .peaks import Peaks

_SITES = 16  # lines that run out of memory, of which notes are kept
_OFTEN = 16  # times that a line is written down at once, then whenever they have doubled
_LENGTH = 1000  # of a message
_PENDING = "tensor_operations_and_memory/out of memory, line"


class Exhaustion:
    """Sees each failed allocation of any device as its error is made, whoever catches it.

    Until Python 3.12 an error is made when somebody is about to handle it, after the frames below have ended. Its line
    is that of the traceback, as long as somebody has it, and else the one that is running.
    """

    def __init__(self, job: Job, peaks: Peaks) -> None:
        self.job, self.peaks = job, peaks
        self.latest: dict[tuple[str, int], OutOfMemory] = {}
        self.pending: tuple[weakref.ref[BaseException], OutOfMemory] | None = None
        self.kind: type[BaseException] = BaseException

    def place(self, job: Job) -> None:
        import torch

        self.kind = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError  # the former since 2.5
        job.wrap(self.kind, "__init__", self.wrap)
        job.listen(self.failed, self.ending)

    def wrap(self, original: Any) -> Any:
        def __init__(error: BaseException, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            original(error, *args, **kwargs)
            if self.job.accelerator.kind:
                self.settle()
                self.pending = weakref.ref(error), self.describe(str(error))
                self.job.place(_PENDING, lambda job: job.listen(self.forward, self.iterated))

        return __init__

    def describe(self, message: str) -> OutOfMemory:
        memory, (path, line) = self.job.accelerator.memory(), self.job.caller()
        event = OutOfMemory(
            step=self.job.step, message=message[:_LENGTH], path=path, line=line, phase=self.peaks.phase,
            others=self.peaks.others if self.peaks.held is not None else None, allocated=memory.get("allocated"),
            reserved=memory.get("reserved"), is_in_handler=self.is_handling(),
        )  # fmt: skip
        return replace(event, **count_holders(self.job), **self.job.accelerator.space())

    def is_handling(self) -> bool:
        return isinstance(sys.exc_info()[1], self.kind)

    def failed(self, phase: str, _error: BaseException) -> None:
        self.settle(phase)

    def forward(self, _module: Any, _args: Any, _kwargs: Any) -> None:
        self.settle()

    def iterated(self, _step: int) -> None:
        self.settle()

    def ending(self) -> None:
        self.settle()
        for event in self.latest.values():
            if event.times > _OFTEN:
                self.job.record(event)

    def settle(self, phase: str = "") -> None:
        """The line of the latest error is as known as it will be."""
        if self.pending is None:
            return
        (error, event), self.pending = self.pending, None
        self.job.withdraw(_PENDING)
        raised = error()
        if raised is not None and (where := self.innermost(raised)) is not None:
            event.path, event.line = where
        event.phase = phase or event.phase
        self.count(event)

    def count(self, event: OutOfMemory) -> None:
        key = event.path, event.line
        before = self.latest.get(key)
        if before is None and len(self.latest) >= _SITES:
            return
        if before is not None:
            event = replace(event, times=before.times + 1, steps=before.steps + (before.step != event.step))
        self.latest[key] = event
        if event.times <= _OFTEN or event.times & (event.times - 1) == 0:
            self.job.record(event)

    def innermost(self, error: BaseException) -> tuple[str, int] | None:
        """The user's innermost line that ERROR came through."""
        found, trace = None, error.__traceback__
        while trace is not None:
            path = self.job.path_of(trace.tb_frame.f_code)
            found = (path, trace.tb_lineno) if path is not None else found
            trace = trace.tb_next
        return found
