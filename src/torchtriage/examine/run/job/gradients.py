"""Watches backward passes."""

from __future__ import annotations

import functools
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
            if job.idle or inside:
                if not inside:
                    job.tidy()
                    job.watched.beside()
                original(*args, **kwargs)
                return
            job.watched.learns()
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
                inside = False
            clock.counts["backwards"] += 1
            job.fire("backwarded", roots)
            if clock.boundary != "optimizer":
                job.safely(clock.passed, "backward")

        return backward

    job.undo(wrapping.replace(torch.autograd, "backward", watched))


def loss(job: Job) -> None:
    """The loss of a step is the root of its last backward pass, before any loss scaling."""

    def read(roots: tuple[Any, ...]) -> None:
        step = job.step
        if roots:
            job.late.read(job.scaling.unscaled(roots[0]), lambda value: job.clock.lost(step, value))

    job.on("backward", read)


def _tuple(torch: Any, tensors: Any) -> tuple[Any, ...]:
    """The roots of a backward pass; a generator is left to the one who is to use it up."""
    if isinstance(tensors, torch.Tensor):
        return (tensors,)
    return tuple(tensors) if isinstance(tensors, (list, tuple)) else ()


def _retains(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether retain_graph is set by hand: create_graph, which needs it, is not."""
    retain, create = (*args[2:4], None, None)[:2]
    return bool(retain or kwargs.get("retain_graph")) and not (create or kwargs.get("create_graph"))
