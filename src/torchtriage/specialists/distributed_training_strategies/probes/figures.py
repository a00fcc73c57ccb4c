"""What a run writes down about evaluations of a part of the samples: whether ranks exchanged anything afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._counted import counted
from ._functions import CARRYING, wrap
from .shards import several

if TYPE_CHECKING:
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


class _Figures:
    """open: loops after which no training has come yet. told: by loop, what its source says and its passes."""

    def __init__(self, job: Job, torch: Any) -> None:
        self.job, self.torch = job, torch
        self.inner = f"{job.placing} within"
        self.exchanges = 0
        self.told: dict[tuple[str, int], dict[str, Any]] = {}
        self.open: list[tuple[tuple[str, int], dict[str, int]]] = []
        self.kept: dict[tuple[str, int], dict[str, Any]] = {}  # the last pass of each loop, not written down yet

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
        if key not in self.told:
            tree = self.job.written.file_of(frame.f_code)
            self.told[key] = {"passes": 0, **(counted(tree, frame.f_lineno) if tree is not None else {})}
        told = self.told[key]
        if "line" in told:
            told["part"] = _part(loader)
            since = {"forwards": self.job.clock.count("forwards"), "exchanges": self.exchanges}
            self.open.append((key, since))
            if len(self.open) == 1:
                self.job.place(self.inner, lambda job: job.listen(self.backward))

    def backward(self, _roots: Any) -> None:
        """Training goes on: the loops that it is in train."""
        within, frame = list[tuple[str | None, int]](), self.job.frame()
        while frame is not None and len(within) < DEPTH:
            within.append((self.job.path_of(frame.f_code), frame.f_lineno))
            frame = frame.f_back
        self.open = [each for each in self.open if not self.holds(each[0], within)]
        self.settle()

    def holds(self, loop: tuple[str, int], within: list[tuple[str | None, int]]) -> bool:
        first, last = self.told[loop]["span"]
        return any(path == loop[0] and first <= line <= last for path, line in within)

    def ending(self) -> None:
        self.settle()
        for facts in self.kept.values():
            self.job.record("evaluated", **facts)

    def settle(self) -> None:
        for key, then in self.open:
            told = self.told[key]
            if self.job.clock.count("forwards") > then["forwards"]:
                told["passes"] += 1
                exchanges = self.exchanges - then["exchanges"]
                facts = {"path": key[0], "loop": key[1], "exchanges": exchanges, **told}
                self.kept[key] = facts
                if told["passes"] <= DENSE or told["passes"].bit_count() == 1:
                    self.job.record("evaluated", **self.kept.pop(key))
        self.open.clear()
        self.job.withdraw(self.inner)


def _part(loader: Any) -> dict[str, Any]:
    """Which part of the samples a loader gives: replicas and rank of its sampler, or first, step and number of them."""
    sampler: Any = getattr(loader, "sampler", None)
    inner: Any = getattr(getattr(loader, "batch_sampler", None), "sampler", None)
    sampler = inner if hasattr(inner, "num_replicas") else sampler
    replicas, rank = getattr(sampler, "num_replicas", None), getattr(sampler, "rank", None)
    if isinstance(replicas, int) and isinstance(rank, int):
        return {"replicas": replicas, "rank": rank}
    indices = getattr(getattr(loader, "dataset", None), "indices", None)
    if isinstance(indices, (list, tuple, range)) and len(indices) > 1 and isinstance(indices[0], int):
        return {"first": indices[0], "step": indices[1] - indices[0], "number": len(indices), "last": indices[-1]}
    return {}
