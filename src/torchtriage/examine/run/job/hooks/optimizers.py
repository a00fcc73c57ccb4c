"""Watches optimizers: where they are built, and whose turn it was."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from ..watch import patching

if TYPE_CHECKING:
    from types import FrameType

    from ..job import Job


def constructions(job: Job) -> None:
    """Notes every optimizer with the line that builds it."""
    import torch

    for older in job.alive(torch.optim.Optimizer):
        job.built.add(older, ("", 0))

    def note(optimizer: Any) -> None:
        job.built.add(optimizer, job.caller(_within_optimizer))

    def building(original: Any) -> Any:
        @functools.wraps(original)
        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            if not job.idle:
                job.safely(note, optimizer)
            original(optimizer, *args, **kwargs)
            job.fire("built", optimizer)

        return __init__

    job.undo(patching.replace(torch.optim.Optimizer, "__init__", building))


def _within_optimizer(frame: FrameType) -> bool:
    """Whether a frame builds an optimizer of the user's own class: whoever asked for it is of interest."""
    import torch

    return frame.f_code.co_name == "__init__" and isinstance(frame.f_locals.get("self"), torch.optim.Optimizer)


def steps(job: Job) -> None:
    """Times every optimizer's step. One that another one calls within its own step belongs to that step; what a closure
    does before its backward pass has ended, none of which is an update, to no phase of its own.
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

    turn = _Turn(job)
    handles = (register_optimizer_step_pre_hook(turn.begin), register_optimizer_step_post_hook(turn.end))
    for handle in handles:
        job.undo(handle.remove)


class _Turn:
    """The turn of the outermost optimizer that is stepping now."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.optimizer: Any = None

    def begin(self, optimizer: Any, *_: Any) -> None:
        job = self.job
        if job.compiling() or job.idle or self._within(optimizer):
            return
        if job.rest.on and job.scaling.scaler is None:
            if job.rest.is_gradient_fine(optimizer):
                self.optimizer, job.scaling.reached = optimizer, True
                return
            job.safely(job.clock.rouse)
        job.safely(self._begin, optimizer)

    def end(self, optimizer: Any, *_: Any) -> None:
        if self.job.compiling():
            return
        if self.optimizer is optimizer:
            self.optimizer = None
            if not self.job.idle and self.job.scaling.reached:
                self.job.safely(self._end, optimizer)

    def _within(self, optimizer: Any) -> bool:
        """Whether another optimizer's step is calling this one's; a step that raised an error never ended its turn."""
        if self.optimizer is None or self.optimizer is optimizer:
            return False
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_locals.get("self") is not self.optimizer:
            frame = frame.f_back
        return frame is not None

    def _begin(self, optimizer: Any) -> None:
        job = self.job
        overhead = job.clock.enter()
        self.optimizer = optimizer
        job.matters()
        job.scaling.reached = not job.scaling.held_back(optimizer)
        if job.scaling.reached:
            job.fire("stepping", optimizer)
            job.clock.leave(overhead, "probes")
            job.clock.update = job.clock.enter()

    def _end(self, optimizer: Any) -> None:
        clock = self.job.clock
        if self.job.rest.on:
            clock.update = None  # a step under a scaler has entered it
            self.job.fire("stepped", optimizer)
            clock.turned(optimizer)
            return
        if clock.update is not None:
            clock.leave(clock.update, "optimizer")
            clock.update = None
        overhead = clock.enter()
        self.job.fire("stepped", optimizer)
        clock.leave(overhead, "probes")
        clock.turned(optimizer)
