"""Watches backward passes."""

from __future__ import annotations

import functools
from time import perf_counter_ns as now
from typing import TYPE_CHECKING, Any

from ..watch import patching

if TYPE_CHECKING:
    from ..job import Job


def place(job: Job) -> None:
    """Times torch.autograd.backward, through which Tensor.backward goes too."""
    import torch

    job.undo(patching.replace(torch.autograd, "backward", _Backward(job, torch.Tensor).watched))


class _Backward:
    """The outermost backward pass that is under way."""

    def __init__(self, job: Job, tensor: type) -> None:
        self.job, self.tensor = job, tensor
        self.inside = False

    def watched(self, original: Any) -> Any:
        job, rest = self.job, self.job.rest

        @functools.wraps(original)
        def backward(*args: Any, **kwargs: Any) -> None:
            if job.compiling():
                original(*args, **kwargs)
            elif rest.on and not (self.inside or job.idle) and rest.is_loss_fine(_root(args, kwargs)):
                if job.listeners.now["backward"]:
                    job.fire("backward", self.roots(_root(args, kwargs)))
                self.inside = True
                try:
                    original(*args, **kwargs)
                finally:
                    self.inside = False
                job.clock.counts["backwards"] += 1
                job.clock.row = 0
                if job.listeners.now["backwarded"]:
                    job.fire("backwarded", self.roots(_root(args, kwargs)))
            elif job.idle or self.inside:
                if not self.inside:
                    job.tidy()
                    job.watched.beside()
                original(*args, **kwargs)
            else:
                self.run(original, args, kwargs)

        return backward

    def run(self, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        job, clock = self.job, self.job.clock
        if job.rest.on:
            job.safely(job.clock.rouse)
        job.watched.learns()
        if not clock.settled:
            job.safely(clock.settle)
        overhead = clock.enter()
        roots = self.roots(_root(args, kwargs))
        job.retaining = _retains(args, kwargs)
        job.fire("backward", roots)
        self.inside = True
        clock.leave(overhead, "probes")
        entered = clock.enter()
        try:
            original(*args, **kwargs)
        except Exception as error:
            job.safely(job.failures.note, "backward", error)
            job.fire("failed", "backward", error)
            raise
        finally:
            clock.leave(entered, "backward")
            overhead = clock.enter()
            clock.propagated = entered[0], now()
            self.inside = False
            if clock.update is not None:
                clock.update = clock.enter()
        clock.counts["backwards"] += 1
        clock.row = 0
        job.fire("backwarded", roots)
        clock.leave(overhead, "probes")
        if clock.boundary != "optimizer":
            job.safely(clock.passed, "backward")

    def roots(self, tensors: Any) -> tuple[Any, ...]:
        """The roots of a backward pass; a generator is left to the one who is to use it up."""
        if isinstance(tensors, self.tensor):
            return (tensors,)
        return tuple(tensors) if isinstance(tensors, (list, tuple)) else ()


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

    job.undo(patching.replace(torch.autograd, "grad", timed))


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


def _root(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs.get("tensors")


def _retains(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether retain_graph is set by hand: create_graph, which needs it, is not."""
    retain = args[2] if len(args) > 2 else kwargs.get("retain_graph")
    if not retain:
        return False
    return not (args[3] if len(args) > 3 else kwargs.get("create_graph"))
