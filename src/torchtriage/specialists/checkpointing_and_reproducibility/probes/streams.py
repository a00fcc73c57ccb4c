"""What a run writes down about streams that several workers read: their batches by rounds, their samples by epoch."""

from __future__ import annotations

import ast
import weakref
from ctypes import string_at
from typing import TYPE_CHECKING, Any

from .events import RepeatedSamples, Repeats

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    from torchtriage.examine.run.job.events import Further
    from torchtriage.examine.run.job.job import Job

_ROUNDS = 32  # of the workers of a loader, whose batches are compared
_TIMES = frozenset({4, 8, 16, 32})  # rounds after which they are written down
_SAMPLES = 8192  # of an epoch whose samples are compared
_VALUES = 64  # of a sample
_LINES, _MOST = 3, 8  # of a function, and in all, that are told
_INNER = "checkpointing_and_reproducibility/repeats within"


def repeats(job: Job) -> None:
    """Rounds of the workers of an iterable dataset in which each of them delivered the same batch, and first epochs
    that ended by themselves, in which each delivered the same samples in an order of its own.

    Workers deliver by turns, so that batch number N comes from worker N modulo their number.
    """
    from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

    watch = _Streams(job)
    job.wrap(_MultiProcessingDataLoaderIter, "_reset", watch.beginning)
    job.listen(watch.ending)


class _Streams:
    """The iterable datasets that several workers of a loader read."""

    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, job.placing
        self.listens = False
        self.streams: weakref.WeakKeyDictionary[Any, _Stream] = weakref.WeakKeyDictionary()

    def beginning(self, original: Any) -> Any:
        from torch.utils.data import IterableDataset
        from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

        def put(job: Job) -> None:
            job.wrap(_MultiProcessingDataLoaderIter, "_next_data", self.asking)

        def _reset(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(loader.dataset, IterableDataset) and loader.num_workers > 1:
                if not self.streams:
                    self.job.place(_INNER, put)
                if not self.listens:
                    self.listens = True
                    self.job.place(self.probe, lambda job: job.listen(self.batch))
                self.streams.setdefault(loader, _Stream(loader)).begin(iterator)
            return original(iterator, loader, *args, **kwargs)

        return _reset

    def asking(self, original: Any) -> Any:
        def _next_data(iterator: Any) -> Any:
            try:
                return original(iterator)
            except StopIteration:
                self.over(iterator)
                raise

        return _next_data

    def over(self, iterator: Any) -> None:
        """An epoch has come to its end by itself."""
        for stream in list(self.streams.values()):
            if stream.iterator() is iterator:
                stream.tell_samples(self.job)
        if not any(stream.samples for stream in self.streams.values()):
            self.job.withdraw(_INNER)

    def batch(self, loader: Any, batch: Any) -> None:
        stream = self.streams.get(loader)
        if stream is None:
            return
        if stream.samples:
            stream.note(batch)
        if not stream.settled and stream.take(self.job, batch) and stream.alike in _TIMES:
            stream.tell_rounds(self.job)

    def ending(self) -> None:
        for stream in self.streams.values():
            if stream.alike and not stream.settled:
                stream.tell_rounds(self.job)


class _Stream:
    """Of one loader: the rounds in which all workers delivered the same. settled: nothing more is to be learned of
    those. samples: what each worker delivered in the first epoch; empty once that is over.
    """

    def __init__(self, loader: Any) -> None:
        self.kind, self.workers = type(loader.dataset), loader.num_workers
        self.round: list[Any] = []
        self.alike = self.values = 0
        self.kinds: set[Any] = set()
        self.settled = not getattr(loader, "in_order", True)
        self.samples: list[list[bytes]] = [] if self.settled else [[] for _ in range(self.workers)]
        self.epochs = self.batches = 0
        self.iterator: Any = None

    def begin(self, iterator: Any) -> None:
        self.round = []
        self.epochs += 1
        if self.epochs > 1:
            self.samples = []  # the first epoch is over, or was left before its end
        self.iterator = weakref.ref(iterator)

    def note(self, batch: Any) -> None:
        """Keeps the beginnings of the samples in a batch of the first epoch."""
        rows = _rows(batch)
        if rows is None or sum(map(len, self.samples)) > _SAMPLES:
            self.samples = []
            return
        self.samples[self.batches % self.workers] += rows
        self.batches += 1

    def tell_samples(self, job: Job) -> None:
        """Of the epoch that has ended: how much of what each worker delivered every worker delivered."""
        samples, self.samples = self.samples, []
        if samples:
            kinds, counts = [set(each) for each in samples], [len(each) for each in samples]
            path, line, further = _place(job, self.kind)
            event = RepeatedSamples(
                dataset=self.kind.__name__, workers=self.workers, samples=min(counts),
                different=min(map(len, kinds)), most=max(counts), shared=len(set.intersection(*kinds)),
                path=path, line=line, further=further,
            )  # fmt: skip
            job.record(event)

    def tell_rounds(self, job: Job) -> None:
        path, line, further = _place(job, self.kind)
        event = Repeats(
            dataset=self.kind.__name__, workers=self.workers, alike=self.alike, kinds=len(self.kinds),
            values=self.values, path=path, line=line, further=further,
        )  # fmt: skip
        job.record(event)

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


def _rows(batch: Any) -> list[bytes] | None:
    """The first values of every sample, of the first tensor of the batch that holds several of each."""
    import torch

    parts = list(batch.values()) if isinstance(batch, dict) else batch if isinstance(batch, (list, tuple)) else [batch]
    found = (each for each in parts if type(each) is torch.Tensor and each.dim() > 1 and each.device.type == "cpu")
    first = next((each for each in found if each[0].numel() > 1 and each.layout is torch.strided), None)
    if first is None:
        return None
    rows = first.detach().reshape(len(first), -1)[:, :_VALUES].contiguous()
    return [string_at(row.data_ptr(), row.nbytes) for row in rows]


def _place(job: Job, kind: type) -> tuple[str, int, Further]:
    """File and line where the stream of that KIND begins, and the further ones that it depends on."""
    code = job.written.code_of(getattr(kind, "__iter__", None))
    path = job.path_of(code) if code is not None else None
    return (path, code.co_firstlineno, _further(job, kind, code)) if code is not None and path else ("", 0, ())


def _further(job: Job, kind: type, code: CodeType) -> Further:
    """The lines that hand the stream on, in __iter__ and the methods that it names, and those that build loaders."""
    named = {each.co_name: each for each in job.written.codes(kind)}
    codes = [code, *(named[word] for word in code.co_names if word in named and named[word] is not code)]
    found: list[tuple[str, str, int]] = []
    for each in codes:
        gives = (ast.For, ast.Yield, ast.YieldFrom, ast.Return)
        lines = sorted({node.lineno for node in _walk(job.written.tree_of(each)) if isinstance(node, gives)})
        says = f"the stream of {kind.__name__} comes through {each.co_name} here, for each worker alike"
        found += [(says, str(job.path_of(each)), line) for line in lines[:_LINES]]
    frame = job.frame()
    tree = job.written.file_of(frame.f_code) if frame is not None else None
    for node in _walk(tree):
        if (
            isinstance(node, ast.Call)
            and any(word.arg == "num_workers" for word in node.keywords)
            and frame is not None
        ):
            found.append(("workers are asked for here", str(job.path_of(frame.f_code)), node.lineno))
    return found[:_MOST]


def _walk(tree: ast.AST | None) -> Iterator[ast.AST]:
    return ast.walk(tree) if tree is not None else iter(())
