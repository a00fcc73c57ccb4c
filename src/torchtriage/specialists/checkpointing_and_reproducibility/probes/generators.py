"""What a run writes down about random generators that a dataset holds: with what state its workers begin."""

from __future__ import annotations

import mmap
import struct
import weakref
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from ._held import generators, reseeds, state_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchtriage.examine.run.job.job import Job

    from .events import Drawn

_SLOT = struct.Struct("<QQ")  # of a generator in a worker: the mark of its first state, and 2 once it has moved
_GENERATORS = 4  # of a dataset, that are followed
_FETCHES = 4  # of a worker, after which nothing more is noted


def owned_generators(job: Job) -> None:
    """Workers that begin with equal states of a generator of the dataset, and draw from it.

    A worker gets copies of the generators by fork, and notes their states in memory that it shares with the job.
    """
    from torch.utils.data import IterableDataset
    from torch.utils.data._utils import worker
    from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

    watch = _Watch(job, IterableDataset)
    job.listen(watch.ending)
    job.wrap(_MultiProcessingDataLoaderIter, "__init__", watch.forking)
    job.wrap(worker, "_worker_loop", watch.working)


class _Round:
    """The workers of one iterator, as they began."""

    def __init__(self, count: int, workers: int) -> None:
        self.count, self.workers = count, workers
        self.board = mmap.mmap(-1, _SLOT.size * count * workers)

    def note(self, worker: int, number: int, mark: int, moved: bool) -> None:
        """Called in the worker."""
        _SLOT.pack_into(self.board, _SLOT.size * (worker * self.count + number), mark + 1, 2 if moved else 1)

    def first(self, number: int) -> list[int]:
        """The marks with which the workers began that have drawn from this generator."""
        slots = [_SLOT.unpack_from(self.board, _SLOT.size * (w * self.count + number)) for w in range(self.workers)]
        return [mark for mark, told in slots if told == 2]


class _Course:
    """Of one dataset: what the workers of all iterators have shown about each of its generators."""

    def __init__(self, held: list[Drawn]) -> None:
        self.held = held
        self.round: _Round | None = None
        self.learned = 0
        self.before: list[list[int]] = [[] for _ in held]  # the marks of the round before

    def close(self) -> None:
        """Reads what the workers of the round have noted."""
        ended, self.round = self.round, None
        if ended is None:
            return
        for number, drawn in enumerate(self.held):
            marks = ended.first(number)
            again = drawn.again + bool(set(marks) & set(self.before[number]))
            self.held[number] = replace(_with_round(drawn, marks), again=again)
            self.before[number] = marks

    def events(self) -> Iterator[Drawn]:
        """What is known so far, the round under way with it."""
        for number, drawn in enumerate(self.held):
            marks = self.round.first(number) if self.round is not None else []
            yield replace(_with_round(drawn, marks), learned=self.learned)


def _with_round(drawn: Drawn, marks: list[int]) -> Drawn:
    """DRAWN with the workers of a round that began with MARKS."""
    alike = max(map(marks.count, marks), default=0)
    return replace(drawn, alike=max(drawn.alike, alike), of=max(drawn.of, len(marks)))


class _Watch:
    def __init__(self, job: Job, iterable: type) -> None:
        self.job, self.probe, self.iterable = job, job.placing, iterable
        self.courses: list[tuple[Any, _Course]] = []
        self.latest: _Course | None = None
        self.forked: tuple[_Round, list[Any]] | None = None  # while workers are made

    def course(self, dataset: Any) -> tuple[_Course, list[Any]] | None:
        """What is known of a dataset, and its generators as they are now."""
        if isinstance(dataset, self.iterable) or not getattr(type(dataset), "__weakrefoffset__", 0):
            return None  # the workers of a stream may have to draw the same, to share it out
        found = generators(dataset, self.job.written)[:_GENERATORS]
        found = [each for each in found if not reseeds(type(each.owner), self.job.written)]
        if not found or reseeds(type(dataset), self.job.written):
            return None
        now = [each.generator for each in found]
        for kept, course in self.courses:
            if kept() is dataset and len(course.held) == len(found):
                return course, now
        if not self.courses:
            self.job.place(self.probe, lambda job: job.listen(self.batch, self.backward))
        course = _Course([each.event(self.job.written) for each in found])
        self.courses.append((weakref.ref(dataset), course))
        return course, now

    def forking(self, original: Any) -> Any:
        def __init__(iterator: Any, loader: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            known = self.course(loader.dataset)
            if known is not None:
                course, now = known
                course.close()
                course.round = _Round(len(now), loader.num_workers)
                self.forked = course.round, now
            try:
                original(iterator, loader, *args, **kwargs)
            finally:
                self.forked = None

        return __init__

    def working(self, original: Any) -> Any:
        def _worker_loop(*args: Any, **kwargs: Any) -> Any:
            if self.forked is not None:
                _follow(*self.forked)
            return original(*args, **kwargs)

        return _worker_loop

    def batch(self, loader: Any, _batch: Any) -> None:
        self.latest = next((course for kept, course in self.courses if kept() is loader.dataset), None)

    def backward(self, _roots: Any) -> None:
        if self.latest is not None:
            self.latest.learned += 1
            if self.latest.learned in (8, 64, 512):
                self.write(self.latest)

    def ending(self) -> None:
        for _, course in self.courses:
            course.close()
            self.write(course)

    def write(self, course: _Course) -> None:
        for drawn in course.events():
            self.job.record(drawn)


def _follow(round: _Round, held: list[Any]) -> None:  # noqa: A002 - it is one
    """In a worker: notes the states before its first batch, and whether its first batches drew from them."""
    from torch.utils.data import get_worker_info
    from torch.utils.data._utils import fetch

    kind: Any = fetch._MapDatasetFetcher
    original = kind.fetch
    first: list[int] = []
    left = _FETCHES

    def look() -> None:
        """Our fault must not become the job's: whatever goes wrong ends the looking."""
        nonlocal left
        try:
            now = [state_of(each) for each in held]
            if first:
                about: Any = get_worker_info()
                for number, mark in enumerate(first):
                    round.note(about.id, number, mark, now[number] != mark)
            else:
                first.extend(now)
        except Exception:  # noqa: BLE001
            left = 1

    def fetched(fetcher: Any, index: Any) -> Any:
        nonlocal left
        if not first:
            look()
        given = original(fetcher, index)
        look()
        left -= 1
        if left <= 0:
            kind.fetch = original
        return given

    kind.fetch = fetched
