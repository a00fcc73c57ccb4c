"""What a run writes down about streams that several workers read: the batches of each round of the workers."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_ROUNDS = 32  # of the workers of a loader, whose batches are compared
_TIMES = frozenset({4, 8, 16, 32})  # rounds after which they are written down


def repeats(job: Job) -> None:
    """Rounds of the workers of an iterable dataset in which each of them delivered the same batch.

    Workers deliver by turns, so that batch number N comes from worker N modulo their number.
    """
    from torch.utils.data import IterableDataset
    from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

    streams: weakref.WeakKeyDictionary[Any, _Stream] = weakref.WeakKeyDictionary()

    def beginning(original: Any) -> Any:
        def _reset(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(loader.dataset, IterableDataset) and loader.num_workers > 1:
                streams.setdefault(loader, _Stream(loader)).round = []
            return original(iterator, loader, *args, **kwargs)

        return _reset

    def batch(loader: Any, batch: Any) -> None:
        if not streams:
            return
        stream = streams.get(loader)
        if stream is not None and not stream.settled and stream.take(job, batch) and stream.alike in _TIMES:
            _write(job, loader, stream)

    def ending() -> None:
        for loader, stream in streams.items():
            if stream.alike and not stream.settled:
                _write(job, loader, stream)

    job.wrap(_MultiProcessingDataLoaderIter, "_reset", beginning)
    job.listen(batch, ending)


class _Stream:
    """Of one loader: the rounds in which all workers delivered the same. settled: nothing more is to be learned."""

    def __init__(self, loader: Any) -> None:
        self.workers = loader.num_workers
        self.round: list[Any] = []
        self.alike = self.values = 0
        self.kinds: set[Any] = set()
        self.settled = not getattr(loader, "in_order", True)

    def take(self, job: Job, batch: Any) -> bool:
        """Whether this batch completes a round of equal ones; a round of others settles the matter."""
        marks = tuple(job.marks(batch))
        self.round.append(marks)
        if marks != self.round[0] or not marks:
            self.settled = True
        if self.settled or len(self.round) < self.workers:
            return False
        self.round = []
        self.alike += 1
        self.kinds.add(marks)
        self.values = sum(values for _, _, values in marks)
        self.settled = self.alike > _ROUNDS
        return True


def _write(job: Job, loader: Any, stream: _Stream) -> None:
    kind = type(loader.dataset)
    code = job.written.code_of(getattr(kind, "__iter__", None))
    path = job.path_of(code) if code is not None else None
    told = {"dataset": kind.__name__, "workers": stream.workers, "alike": stream.alike, "kinds": len(stream.kinds)}
    line = code.co_firstlineno if code is not None and path else 0
    job.record("repeats", **told, values=stream.values, path=path or "", line=line)
