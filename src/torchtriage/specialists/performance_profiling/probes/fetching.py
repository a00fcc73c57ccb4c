"""What a run writes down about the parts of making a batch: its samples, and putting them together."""

from __future__ import annotations

import os
from time import perf_counter_ns as now
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .events import Fetch, Making

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_TIMES = frozenset({4, 8, 64, 512, 4096, 32_768})  # batches after which the sums are written down: epochs may be short
_WARM = 2  # batches of a worker before its lines are asked for
_SHORTEST = 0.001  # seconds of a batch, below which they are not
_LOOK = 0.4  # seconds of making batches, for which they are


def fetching(job: Job) -> None:
    """The seconds that samples and collate_fn take, in sums over the batches that are looked at: in the process that
    trains where a loader has no workers, else in each of its workers.
    """
    from torch.utils.data import _utils

    job.sampled()
    spent = _Spent(job)

    def make(original: Any) -> Any:
        def fetch(fetcher: Any, *args: Any, **kwargs: Any) -> Any:
            collate, collating = fetcher.collate_fn, 0

            def timed(data: Any) -> Any:
                nonlocal collating
                entered = now()
                try:
                    return collate(data)
                finally:
                    collating += now() - entered

            fetcher.collate_fn = timed
            began = now()
            try:
                return original(fetcher, *args, **kwargs)
            finally:
                took, fetcher.collate_fn = now() - began, collate
                spent.add(took - collating, collating)

        return fetch

    for kind in (_utils.fetch._MapDatasetFetcher, _utils.fetch._IterableDatasetFetcher):
        job.wrap(kind, "fetch", make)
    job.listen(spent.ending)


class _Spent:
    """The sums of this process: a worker begins with what its parent had, and forgets it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.restart()

    def restart(self) -> None:
        from torch.utils.data import get_worker_info

        self.process, self.batches, self.samples, self.collate = os.getpid(), 0, 0, 0
        self.worker, self.looks = get_worker_info(), False

    def add(self, samples: int, collate: int) -> None:
        if self.process != os.getpid():
            self.restart()
        self.batches += 1
        self.samples += samples
        self.collate += collate
        if self.batches in _TIMES:
            self.tell()
        if self.worker is not None and not self.worker.id:
            self.look((self.samples + self.collate) / 1e9)

    def look(self, seconds: float) -> None:
        """Where the first worker stands, from its third batch on, for some time: written down once."""
        stacks = self.job.stacks
        if self.batches == _WARM and seconds >= _WARM * _SHORTEST:
            self.looks = stacks.start(seconds / _WARM)
        elif self.looks and self.batches > _WARM and seconds * (1 - _WARM / self.batches) >= _LOOK:
            self.looks = False
            stacks.end()
            self.job.writer.aside(stacks.summary(Making))

    def ending(self) -> None:
        if self.batches and self.process == os.getpid():
            self.tell()

    def tell(self) -> None:
        worker = self.worker
        told = Fetch(workers=0, batches=self.batches, samples=self.samples / 1e9, collate=self.collate / 1e9)
        if worker is None:
            self.job.record(told)
        else:
            self.job.writer.aside(replace(told, workers=worker.num_workers, worker=worker.id))
