"""Watches backward passes."""

from __future__ import annotations

import functools
from time import perf_counter_ns as now
from typing import TYPE_CHECKING, Any

from . import wrapping

if TYPE_CHECKING:
    from .job import Job


def place(job: Job) -> None:
    """Times torch.autograd.backward, through which Tensor.backward goes too."""
    import torch

    clock = job.clock
    inside = False

    def watched(original: Any) -> Any:
        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> None:
            nonlocal inside
            if job.compiling():
                original(*args, **kwargs)
                return
            if job.idle or inside:
                if not inside:
                    job.tidy()
                    job.watched.beside()
                original(*args, **kwargs)
                return
            job.watched.learns()
            if not clock.settled:
                job.safely(clock.settle)
            roots = _tuple(torch, args[0] if args else kwargs.get("tensors"))
            job.retaining = _retains(args, kwargs)
            job.fire("backward", roots)
            inside = True
            entered = clock.enter()
            try:
                original(*args, **kwargs)
            finally:
                clock.leave(entered, "backward")
                clock.propagated = entered[0], now()
                inside = False
                if clock.update is not None:
                    clock.update = clock.enter()
            clock.counts["backwards"] += 1
            clock.row = 0
            job.fire("backwarded", roots)
            if clock.boundary != "optimizer":
                job.safely(clock.passed, "backward")

        return backward

    job.undo(wrapping.replace(torch.autograd, "backward", watched))


def returned(job: Job) -> None:
    """Times torch.autograd.grad, which fills no gradients: nobody is told of it."""
    import torch

    def timed(original: Any) -> Any:
        @functools.wraps(original)
        def grad(*args: Any, **kwargs: Any) -> Any:
            if job.compiling() or job.idle:
                return original(*args, **kwargs)
            entered = job.clock.enter()
            try:
                return original(*args, **kwargs)
            finally:
                job.clock.leave(entered, "backward")

        return grad

    job.undo(wrapping.replace(torch.autograd, "grad", timed))


def loss(job: Job) -> None:
    """The loss of a step is the root of its last backward pass, before any loss scaling."""
    from torch import Tensor

    def read(roots: tuple[Any, ...]) -> None:
        step, job.loss = job.step, None
        if not roots:
            return
        loss = job.scaling.unscaled(roots[0])
        if type(loss) is Tensor and loss.is_cpu and loss.numel() == 1:
            job.loss = float(loss.item())
            job.clock.lost(step, job.loss)
        else:
            job.late.read(loss, lambda value: job.clock.lost(step, value))

    job.on("backward", read)


def _tuple(torch: Any, tensors: Any) -> tuple[Any, ...]:
    """The roots of a backward pass; a generator is left to the one who is to use it up."""
    if isinstance(tensors, torch.Tensor):
        return (tensors,)
    return tuple(tensors) if isinstance(tensors, (list, tuple)) else ()


def _retains(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether retain_graph is set by hand: create_graph, which needs it, is not."""
    retain = args[2] if len(args) > 2 else kwargs.get("retain_graph")
    if not retain:
        return False
    return not (args[3] if len(args) > 3 else kwargs.get("create_graph"))
