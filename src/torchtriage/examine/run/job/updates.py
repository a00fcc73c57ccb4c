"""Watches optimizers and gradient scalers: who had its turn, and whether it was skipped."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from . import wrapping

if TYPE_CHECKING:
    from types import FrameType

    from .job import Job


def optimizers(job: Job) -> None:
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
            job.safely(job.rest.rouse)
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


class Scaling:
    """What is known about gradient scalers: the loss before scaling, and whether a scaled step reached its update."""

    def __init__(self) -> None:
        self.reached = False
        self.scaler: Any = None
        self._scaled: Any = None
        self._loss: Any = None

    def scaled(self, tensor: Any, loss: Any) -> None:
        """Remembers that TENSOR is LOSS times the scale."""
        if hasattr(loss, "detach") and hasattr(tensor, "detach"):
            self._scaled, self._loss = tensor, loss.detach()

    def unscaled(self, tensor: Any) -> Any:
        """The loss behind TENSOR, which is TENSOR itself when nobody scaled it."""
        found = self._loss if tensor is self._scaled else tensor
        self._scaled = self._loss = None
        return found

    def behind(self, tensor: Any) -> Any:
        """The same, for one who only looks."""
        return self._loss if tensor is self._scaled else tensor

    def forget(self) -> None:
        self._scaled = self._loss = None

    def held_back(self, optimizer: Any) -> bool:
        """Whether a fused optimizer is about to skip its update; on a device that cannot be known yet."""
        found = getattr(optimizer, "found_inf", None) if self.scaler is not None else None
        return found is not None and found.device.type == "cpu" and bool(found.item())


def scalers(job: Job) -> None:
    """Tells the steps that a GradScaler skips, its scale, and the loss before it was scaled."""
    from torch.amp.grad_scaler import GradScaler

    for name, make in (("step", _stepping), ("scale", _scaling), ("update", _updating)):
        job.undo(wrapping.replace(GradScaler, name, functools.partial(make, job)))


def scale(job: Job) -> None:
    """The loss scale after every update, read as late as need be."""

    def rescaled(scaler: Any) -> None:
        if getattr(scaler, "_scale", None) is not None:  # a scaler that is not enabled has none
            job.late.read(scaler._scale, job.clock.scaled)

    job.listen(rescaled)


def _stepping(job: Job, original: Any) -> Any:
    def skipped(scaler: Any, optimizer: Any) -> None:
        job.clock.counts["skipped"] += 1
        job.matters()
        job.fire("skipped", optimizer, scaler)
        job.clock.turned(optimizer)

    @functools.wraps(original)
    def step(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if job.idle or job.scaling.scaler is not None:
            return original(scaler, optimizer, *args, **kwargs)
        job.scaling.scaler, job.scaling.reached = scaler, False
        try:
            result = original(scaler, optimizer, *args, **kwargs)
        finally:
            job.scaling.scaler = None
        if not job.idle and not job.scaling.reached:
            job.safely(skipped, scaler, optimizer)
        return result

    return step


def _scaling(job: Job, original: Any) -> Any:
    @functools.wraps(original)
    def scale(scaler: Any, outputs: Any) -> Any:
        result = original(scaler, outputs)
        if not job.idle:
            job.safely(job.scaling.scaled, result, outputs)
        return result

    return scale


def _updating(job: Job, original: Any) -> Any:
    @functools.wraps(original)
    def update(scaler: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(scaler, *args, **kwargs)
        job.fire("rescaled", scaler)
        return result

    return update
