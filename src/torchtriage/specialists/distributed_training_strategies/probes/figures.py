"""What a run writes down about evaluations of a part of the samples: whether ranks exchanged anything afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from torchtriage.examine.run.job.events import replace

from ._counted import counted
from ._functions import CARRYING, wrap
from .events import Evaluated
from .shards import division, several

if TYPE_CHECKING:
    import ast

    from torchtriage.examine.run.job.events import Where
    from torchtriage.examine.run.job.job import Job

DEPTH = 30  # frames in which a loop is looked for
DENSE = 8  # passes of each loop that are written down, then ever fewer, and the last


def figures(job: Job) -> None:
    """Of each loop over a loader that no backward follows: how often data went round until training went on."""
    import torch

    if not torch.distributed.is_available():
        return
    watch = _Figures(job, torch)
    for name in CARRYING:
        wrap(job, name, watch.exchanging)
    job.listen(watch.begun, watch.ending)


class _Pass(NamedTuple):
    """A pass over a loader, and how many forward passes and exchanges there were before it."""

    loop: Where
    forwards: int
    exchanges: int


class _Figures:
    """open: passes after which no training has come yet. passes: by loop, the last; None where no figure is made."""

    def __init__(self, job: Job, torch: Any) -> None:
        self.job, self.torch = job, torch
        self.inner = f"{job.placing} within"
        self.exchanges = 0
        self.passes: dict[Where, Evaluated | None] = {}
        self.open: list[_Pass] = []
        self.kept: dict[Where, Evaluated] = {}  # the last pass of each loop, not written down yet

    def exchanging(self, original: Any) -> Any:
        def collective(*args: Any, **kwargs: Any) -> Any:
            self.exchanges += 1
            return original(*args, **kwargs)

        return collective

    def begun(self, loader: Any, _given: int) -> None:
        frame = self.job.frame() if several(self.torch) else None
        path = self.job.path_of(frame.f_code) if frame is not None else None
        if frame is None or path is None:
            return
        key = (path, frame.f_lineno)
        if key not in self.passes:
            self.passes[key] = self.first(*key, self.job.written.file_of(frame.f_code))
        event = self.passes[key]
        if event is not None:
            event.part = _part(loader)
            self.open.append(_Pass(key, self.job.clock.count("forwards"), self.exchanges))
            if len(self.open) == 1:
                self.job.place(self.inner, self.waiting)

    def waiting(self, job: Job) -> None:
        """For the next backward pass, in whatever step it is."""
        job.continuous()
        job.listen(self.backward)

    def first(self, path: str, line: int, tree: ast.AST | None) -> Evaluated | None:
        """What is true of all passes over the loop in LINE; None where no figure is made after it."""
        figure = counted(tree, line) if tree is not None else None
        if figure is None:
            return None
        return Evaluated(
            path=path,
            loop=line,
            line=figure.line,
            counts=figure.counts,
            labelled=figure.labelled,
            span=figure.span,
            passes=0,
            exchanges=0,
            part={},
        )

    def backward(self, _roots: Any) -> None:
        """Training goes on: the loops that it is in train."""
        within, frame = list[tuple[str | None, int]](), self.job.frame()
        while frame is not None and len(within) < DEPTH:
            within.append((self.job.path_of(frame.f_code), frame.f_lineno))
            frame = frame.f_back
        self.open = [each for each in self.open if not self.holds(each.loop, within)]
        self.settle()

    def holds(self, loop: Where, within: list[tuple[str | None, int]]) -> bool:
        event = self.passes[loop]
        return event is not None and any(
            path == event.path and event.span[0] <= line <= event.span[1] for path, line in within
        )

    def ending(self) -> None:
        self.settle()
        for event in self.kept.values():
            self.job.record(event)

    def settle(self) -> None:
        for loop, forwards, exchanges in self.open:
            event = self.passes[loop]
            if event is not None and self.job.clock.count("forwards") > forwards:
                event.passes += 1
                self.kept[loop] = replace(event, exchanges=self.exchanges - exchanges)
                if event.passes <= DENSE or event.passes.bit_count() == 1:
                    self.job.record(self.kept.pop(loop))
        self.open.clear()
        self.job.withdraw(self.inner)


def _part(loader: Any) -> dict[str, int]:
    """Which part of the samples a loader gives: replicas and rank of its sampler, or first, step and number of them."""
    _, replicas, rank = division(loader)
    if replicas is not None and rank is not None:
        return {"replicas": replicas, "rank": rank}
    indices = getattr(getattr(loader, "dataset", None), "indices", None)
    if isinstance(indices, (list, tuple, range)) and len(indices) > 1 and isinstance(indices[0], int):
        return {"first": indices[0], "step": indices[1] - indices[0], "number": len(indices), "last": indices[-1]}
    return {}
