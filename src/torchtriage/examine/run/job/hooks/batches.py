"""Watches DataLoaders: what the loop waits for, and what it gets."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from ..watch import patching

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..job import Job


def place(job: Job) -> None:
    """Times the making of a loader's iterator and every batch asked of it, both as waiting for data."""
    from torch.utils.data.dataloader import DataLoader, _BaseDataLoaderIter

    watch = _Loaders(job, _BaseDataLoaderIter)
    job.batches_of, job.loader_of = watch.batches_of, watch.loader_of
    job.undo(patching.replace(DataLoader, "__iter__", watch.waiting(watch.begun)))
    job.undo(patching.replace(_BaseDataLoaderIter, "__next__", watch.waiting(watch.delivered, watch.count_at_rest)))


class _Loaders:
    """Which loader an iterator belongs to, and how many batches each has given."""

    def __init__(self, job: Job, plain: type) -> None:
        self.job, self.clock, self.plain = job, job.clock, plain
        self.by_iterator: weakref.WeakKeyDictionary[Any, tuple[Callable[[], Any], _Given]] = weakref.WeakKeyDictionary()
        self.givens: weakref.WeakKeyDictionary[Any, _Given] = weakref.WeakKeyDictionary()
        self.latest: tuple[Callable[[], Any], _Given] = (bool, _Given())  # the iterator that was asked last

    def batches_of(self, loader: Any) -> int:
        """How many batches LOADER has given so far."""
        known = self.givens.get(loader)
        return known.batches if known is not None else 0

    def loader_of(self, iterator: Any) -> Any:
        """None where that is not known."""
        known = self.by_iterator.get(iterator)
        return known[0]() if known is not None else None

    def begun(self, loader: Any, iterator: Any) -> None:
        self.clock.counts["epochs"] += 1
        given = self.givens.setdefault(loader, _Given())
        if isinstance(iterator, self.plain):
            # A loader whose workers persist holds its iterator: held by us too, neither would ever be freed.
            kept = weakref.ref(loader) if loader.persistent_workers else lambda: loader
            self.by_iterator[iterator] = (kept, given)
        self.job.fire("begun", loader, given.batches)

    def delivered(self, iterator: Any, batch: Any) -> None:
        loader = self.count(iterator)
        if loader is not None:
            self.job.matters()
            self.job.fire("batch", loader, batch)

    def count(self, iterator: Any) -> Any:
        """Counts a batch; gives the loader that it came from, None where that is not known."""
        self.clock.counts["batches"] += 1
        known = self.by_iterator.get(iterator)
        loader = known[0]() if known is not None else None
        if known is not None and loader is not None:
            known[1].batches += 1
            self.latest = weakref.ref(iterator), known[1]
        return loader

    def count_at_rest(self, iterator: Any, _batch: Any) -> None:
        latest, given = self.latest
        if latest() is iterator:
            given.batches += 1
            self.clock.counts["batches"] += 1
        else:
            self.count(iterator)

    def waiting(
        self, after: Callable[[Any, Any], None], at_rest: Callable[[Any, Any], None] | None = None
    ) -> Callable[[Any], Any]:
        """A wait for data, after which AFTER gets the one that was asked and what it gave.

        AT_REST: does so instead, in a step that rests and of whose batches nobody is told.
        """
        job, clock, rest = self.job, self.clock, self.job.rest

        def make(original: Any) -> Any:
            @functools.wraps(original)
            def ask(asked: Any) -> Any:
                if job.idle:
                    job.tidy()
                    return original(asked)
                if clock.settled:
                    clock.fetched = True
                else:
                    job.safely(clock.fetching)
                if rest.on and at_rest is not None:
                    given = original(asked)
                    rest.batch = asked, given
                    job.safely(after if job.listeners.now["batch"] else at_rest, asked, given)
                    return given
                if job.listeners.now["fetching"]:
                    job.fire("fetching")
                entered = clock.enter()
                try:
                    given = original(asked)
                finally:
                    clock.leave(entered, "data")
                overhead = clock.enter()
                job.safely(after, asked, given)
                clock.leave(overhead, "probes")
                return given

            return ask

        return make


class _Given:
    """How many batches a loader has given, in all passes over it."""

    batches = 0
