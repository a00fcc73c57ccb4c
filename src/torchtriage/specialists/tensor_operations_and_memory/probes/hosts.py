"""What a run writes down about the host's memory: this process's own, and that of its loaders' workers."""

from __future__ import annotations

import os
import sys
import weakref
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .events import Host, WorkersFill
from .fillings import filled_by

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_DENSE = 100  # readings, in all steps that are seen; after that one whenever another fortieth of the time has passed
_APART = 1 / 40
_DEEP = 8  # datasets that wrap each other
_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def hosts(job: Job) -> None:
    """Private and virtual bytes of this process, and private bytes of the processes that it has started, over time."""
    if _memory(os.getpid()) is None:
        return
    job.spaced()
    watch = _Hosts(job)
    job.listen(watch.batch, watch.iterated)


class _Hosts:
    """generation: counts the sets of workers; a loader without persistent ones starts new ones for each epoch."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.began = self.due = perf_counter()
        self.readings = self.generation = 0
        self.workers: tuple[int, ...] = ()
        self.known: weakref.WeakSet[Any] = weakref.WeakSet()  # loaders

    def batch(self, loader: Any, _batch: Any) -> None:
        """Whatever a dataset keeps grows in the workers, where nobody looks."""
        if loader.num_workers and loader not in self.known:
            self.known.add(loader)
            found = [each for part in _parts(loader) for each in filled_by(self.job, part)]
            self.job.record(WorkersFill(places=found))

    def iterated(self, _step: int) -> None:
        now = perf_counter()
        if now < self.due:
            return
        self.readings += 1
        if self.readings > _DENSE:
            self.due = now + (now - self.began) * _APART
        self.read()

    def read(self) -> None:
        own = _memory(os.getpid())
        found = {pid: sizes[1] for pid in _children() if (sizes := _memory(pid)) is not None}
        if tuple(found) != self.workers:
            self.generation += 1
            self.workers = tuple(found)
        if own is not None:
            # A simulated device keeps its memory and its ledger in this process: what else grows in it nobody sees.
            virtual, private = own if not self.job.accelerator.is_simulated else (0, 0)
            told = Host(
                virtual=virtual, private=private, workers=len(found), theirs=sum(found.values()),
                generation=self.generation,
            )  # fmt: skip
            self.job.record(told)


def _parts(loader: Any) -> list[Any]:
    """The dataset, with those below it, and the function that makes batches: what works in a worker."""
    parts = [loader.collate_fn, loader.dataset]
    while len(parts) < _DEEP and getattr(parts[-1], "dataset", None) is not None:
        parts.append(parts[-1].dataset)
    return parts


def _children() -> list[int]:
    """The daemons among the processes that multiprocessing has started; it is not asked, since that reaps them."""
    process = sys.modules.get("multiprocessing.process")
    started: list[Any] = list(getattr(process, "_children", ()))
    return sorted(each.pid for each in started if each.daemon and each.pid is not None)


def _memory(pid: int) -> tuple[int, int] | None:
    """Virtual bytes of a process, and resident ones that are in no file; None where the system does not tell."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:  # noqa: PTH123 - a path object costs as much as the reading
            virtual, resident, shared = file.read().split()[:3]
    except OSError:
        return None
    return int(virtual) * _PAGE, (int(resident) - int(shared)) * _PAGE
