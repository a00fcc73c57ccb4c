"""What a run writes down about the memory that parameters, gradients and optimizer states take up."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from .census import Census, count_holders, gradients_of
from .events import Residents

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_TURN = 2  # of an optimizer's steps, the one that is measured: its state is made in the first
_STEPS = 4  # after which no optimizer is waited for


def residents(job: Job) -> None:
    """Bytes of parameters, buffers, gradients and optimizer states on this process's device, once."""
    probe = job.placing
    watch = _Residents(job)
    job.listen(watch.stepped)

    def iterated(step: int) -> None:
        if step >= _STEPS:
            watch.tell()
            job.withdraw(probe)

    job.listen(iterated)


class _Residents:
    """gradients: bytes, measured in a turn of each optimizer: with two of them, those of one may be gone in the turn of
    the other.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.turns: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self.gradients = 0

    def stepped(self, optimizer: Any) -> None:
        turn = self.turns[optimizer] = self.turns.get(optimizer, 0) + 1
        if turn == _TURN:
            parameters = (each for group in optimizer.param_groups for each in group["params"])
            self.gradients += Census(self.job).count(gradients_of(parameters))

    def tell(self) -> None:
        if self.gradients:
            holders = count_holders(self.job)
            self.job.record(Residents(**{**holders, "gradients": self.gradients}))
