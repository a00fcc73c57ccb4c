"""What a run writes down about the work that a step is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .events import Work

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_BLOCK = 8  # looks that one line tells about
_DEEP = 4
_WIDE = 64  # entries of one container that are looked at


def work(job: Job) -> None:
    """How many numbers go into the models of a step, and how many of their parameters there are and learn: in means
    over the steps that are looked at.
    """
    job.spaced()
    watch = _Watch(job)
    job.listen(watch.forward, watch.batch, watch.iterated)
    job.on("ending", watch.tell)


class _Watch:
    """The sums over one block of steps that are looked at."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.since = self.steps = self.inputs = self.batches = 0

    def forward(self, _module: Any, args: Any, kwargs: Any) -> None:
        self.inputs += _numbers(args, _DEEP) + (_numbers(kwargs, _DEEP) if kwargs else 0)

    def batch(self, _loader: Any, batch: Any) -> None:
        self.batches += _numbers(batch, _DEEP)

    def iterated(self, step: int) -> None:
        if not self.steps:
            self.since = step
        self.steps += 1
        if self.steps >= _BLOCK:
            self.tell()

    def tell(self) -> None:
        if self.steps:
            parameters = [each for root in self.job.roots for each in root.parameters()]
            event = Work(
                since=self.since,
                inputs=round(self.inputs / self.steps),
                batches=round(self.batches / self.steps),
                parameters=sum(each.numel() for each in parameters),
                trainable=sum(each.numel() for each in parameters if each.requires_grad),
            )
            self.job.record(event)
        self.steps = self.inputs = self.batches = 0


def _numbers(value: Any, depth: int) -> int:
    """The numbers in the tensors of VALUE; a list of other things counts as long as it is."""
    if hasattr(value, "numel") and hasattr(value, "shape"):
        return int(value.numel())
    if not depth or isinstance(value, (str, bytes, int, float)) or value is None:
        return 0
    if hasattr(value, "keys") and hasattr(value, "values"):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return len(value) + sum(_numbers(each, depth - 1) for each in value[:_WIDE])
    inside = getattr(value, "__dict__", None)
    return _numbers(list(inside.values()), depth - 1) if inside else 0
