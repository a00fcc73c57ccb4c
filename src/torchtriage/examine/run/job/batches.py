"""Watches DataLoaders: what the loop waits for, and what it gets."""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

from . import wrapping

if TYPE_CHECKING:
    from collections.abc import Callable

    from .job import Job


def place(job: Job) -> None:
    """Times the making of a loader's iterator and every batch asked of it, both as waiting for data."""
    from torch.utils.data.dataloader import DataLoader, _BaseDataLoaderIter

    loaders: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()  # by iterator: the loader, and _Given
    givens: weakref.WeakKeyDictionary[Any, _Given] = weakref.WeakKeyDictionary()
    clock = job.clock

    def begun(loader: Any, iterator: Any) -> None:
        clock.counts["epochs"] += 1
        given = givens.setdefault(loader, _Given())
        if isinstance(iterator, _BaseDataLoaderIter):
            # A loader whose workers persist holds its iterator: held by us too, neither would ever be freed.
            kept = weakref.ref(loader) if loader.persistent_workers else lambda: loader
            loaders[iterator] = (kept, given)
        job.fire("begun", loader, given.batches)

    def delivered(iterator: Any, batch: Any) -> None:
        clock.counts["batches"] += 1
        known = loaders.get(iterator)
        loader = known[0]() if known is not None else None
        if known is not None and loader is not None:
            known[1].batches += 1
            job.matters()
            job.fire("batch", loader, batch)

    def waiting(after: Callable[[Any, Any], None]) -> Callable[[Any], Any]:
        """A wait for data, after which AFTER gets the one that was asked and what it gave."""

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
                entered = clock.enter()
                try:
                    given = original(asked)
                finally:
                    clock.leave(entered, "data")
                job.safely(after, asked, given)
                return given

            return ask

        return make

    job.undo(wrapping.replace(DataLoader, "__iter__", waiting(begun)))
    job.undo(wrapping.replace(_BaseDataLoaderIter, "__next__", waiting(delivered)))


class _Given:
    """How many batches a loader has given, in all passes over it."""

    batches = 0
