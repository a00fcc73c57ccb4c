"""Watches gradient scalers: the steps that they skip, their scale, and the loss before it was scaled."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..watch import patching

if TYPE_CHECKING:
    from ..job import Job


def place(job: Job) -> None:
    """Tells the steps that a GradScaler skips, its scale, and the loss before it was scaled."""
    from torch.amp.grad_scaler import GradScaler

    for name, make in (("step", _stepping), ("scale", _scaling), ("update", _updating)):
        job.undo(patching.replace(GradScaler, name, functools.partial(make, job)))


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
