"""What a run writes down about the parts of making a batch: its samples, and putting them together."""

from __future__ import annotations

import os
from time import perf_counter_ns as now
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_TIMES = frozenset({4, 8, 64, 512, 4096, 32_768})  # batches after which the sums are written down: epochs may be short


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
        self.process, self.batches, self.samples, self.collate = os.getpid(), 0, 0, 0

    def add(self, samples: int, collate: int) -> None:
        if self.process != os.getpid():
            self.restart()
        self.batches += 1
        self.samples += samples
        self.collate += collate
        if self.batches in _TIMES:
            self.tell()

    def ending(self) -> None:
        if self.batches and self.process == os.getpid():
            self.tell()

    def tell(self) -> None:
        from torch.utils.data import get_worker_info

        worker = get_worker_info()
        facts = {"batches": self.batches, "samples": self.samples / 1e9, "collate": self.collate / 1e9}
        if worker is None:
            self.job.record("fetch", workers=0, **facts)
        else:
            self.job.writer.aside({"kind": "fetch", "workers": worker.num_workers, "worker": worker.id, **facts})
