"""What a run writes down about tensors whose numbers the host reads one by one."""

from __future__ import annotations

from collections import Counter
from time import perf_counter_ns as now
from typing import TYPE_CHECKING, Any

from .events import Elements

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_STEPS = frozenset({12, 40})  # of which the calls are counted: what a training does in each step is seen in both
_READING = ("item", "__float__", "__int__", "__bool__")
_MANY = 64  # numbers that one line reads in a step
_TIMED = 64  # reads, of which one is timed


def elements(job: Job) -> None:
    """How many numbers a line reads out of larger tensors, in two steps, and what one takes that waits for nothing."""
    watch = _Elements(job)
    job.listen(watch.iterated)


class _Elements:
    def __init__(self, job: Job) -> None:
        self.job, self.probe, self.inner = job, job.placing, f"{job.placing} within"
        self.reads: Counter[tuple[str, int]] = Counter()
        self.latest: Any = None  # a number, and the function that reads it
        self.left = len(_STEPS)

    def iterated(self, step: int) -> None:
        if self.latest is not None or step - 1 in _STEPS:
            self.job.withdraw(self.inner)
            self.write(step)
            self.left -= 1
        if step in _STEPS:
            self.job.place(self.inner, self.follow)
        elif not self.left:
            self.job.withdraw(self.probe)

    def follow(self, job: Job) -> None:
        import torch

        for name in _READING:
            job.wrap(torch.Tensor, name, self.counting)

    def counting(self, original: Any) -> Any:
        raw = original.__wrapped__

        def read(tensor: Any, *args: Any) -> Any:
            if tensor.dim() == 0 and tensor._is_view():
                self.reads[self.job.caller()] += 1
                self.latest = tensor, raw
            return original(tensor, *args)

        return read

    def write(self, step: int) -> None:
        reads, latest = self.reads.most_common(1), self.latest
        self.reads, self.latest = Counter(), None
        if latest is not None and reads[0][1] >= _MANY and reads[0][0][1]:
            (path, line), count = reads[0]
            self.job.record(Elements(at=step, path=path, line=line, reads=count, seconds=_seconds(*latest)))


def _seconds(tensor: Any, read: Any) -> float:
    """What it takes to go to the next number of a tensor such as TENSOR, and to READ that, with nothing of ours."""
    numbers = tensor.new_zeros(_TIMED)
    began = now()
    for each in numbers:
        read(each)
    return (now() - began) / _TIMED / 1e9
