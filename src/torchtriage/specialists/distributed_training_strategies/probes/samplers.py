"""What a run writes down about samplers that divide the data among the ranks: the order of each epoch."""

from __future__ import annotations

import weakref
import zlib
from typing import TYPE_CHECKING, Any

from .events import Order

if TYPE_CHECKING:
    from torchtriage.examine.run.job.job import Job

_TIMES = frozenset({1, 3, 10, 100, 1000})  # when something that keeps happening is written down again
_MARKED = 4  # first batches of an epoch whose tensors are noted
_INDICES = 1000  # of an order, that are held against those of the next


def orders(job: Job) -> None:
    """Epochs of a shuffling DistributedSampler that had the order of the one before."""
    from torch.utils.data.distributed import DistributedSampler

    watch = _Orders(job)
    job.listen(watch.ending)
    job.wrap(DistributedSampler, "__init__", watch.making)
    job.wrap(DistributedSampler, "__iter__", watch.beginning)


class _Epoch:
    """One pass over the sampler: its order, how much of it was learned from, and marks of its first batches.

    marks: of the tensors of the first batches, by their place in a batch: what came is told by it, not what was asked.
    """

    def __init__(self, number: int, order: int | None) -> None:
        self.number, self.order = number, order
        self.batches = self.learned = 0
        self.marks: dict[str, int] = {}

    def delivered(self, job: Job, batch: Any) -> None:
        self.batches += 1
        if self.batches <= _MARKED:
            for name, mark, _ in job.marks(batch):
                self.marks[name] = zlib.crc32(str(mark).encode(), self.marks.get(name, 0))

    @property
    def is_known(self) -> bool:
        """Nothing that comes later in it tells more."""
        return self.batches >= _MARKED and self.learned > 0

    def like(self, other: _Epoch) -> bool:
        """The same samples in the same order: random changes may hide that in some tensors, not in all."""
        same = not self.marks or any(other.marks.get(name) == mark for name, mark in self.marks.items())
        return self.order is not None and self.order == other.order and same


class _Course:
    """The epochs over one dataset that taught something. again, changed: those with the order before, with another."""

    def __init__(self, sampler: Any) -> None:
        self.sampler, self.seed, self.length = weakref.ref(sampler), sampler.seed, len(sampler)
        self.again = self.changed = 0
        self.current: _Epoch | None = None
        self.before: _Epoch | None = None
        self.where: tuple[str, int] = ("", 0)
        self.loop: tuple[str, int] = ("", 0)  # the line that asked for the last order

    def turn(self, epoch: _Epoch | None) -> bool:
        """The current epoch is over and EPOCH begins; whether the one that is over went over the same order again."""
        ended, self.current = self.current, epoch
        if ended is None or ended.batches < 2 or not ended.learned:
            return False  # a look at the data, or a validation
        before, self.before = self.before, ended
        if before is None:
            return False
        again = ended.like(before)
        self.again, self.changed = self.again + again, self.changed + (not again)
        return again


class _Orders:
    def __init__(self, job: Job) -> None:
        self.job, self.inner = job, f"{job.placing} within"
        self.made: weakref.WeakKeyDictionary[Any, tuple[str, int]] = weakref.WeakKeyDictionary()
        self.courses: list[tuple[Any, _Course]] = []
        self.open: weakref.WeakKeyDictionary[Any, _Course] = weakref.WeakKeyDictionary()
        self.latest: _Epoch | None = None  # the batch that came last belongs to it

    def making(self, original: Any) -> Any:
        def __init__(sampler: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
            original(sampler, *args, **kwargs)
            self.made[sampler] = self.job.caller()

        return __init__

    def beginning(self, original: Any) -> Any:
        def __iter__(sampler: Any) -> Any:  # noqa: N807 - it is one
            indices = original(sampler)
            if sampler.shuffle:
                self.begun(sampler, indices)
            return indices

        return __iter__

    def begun(self, sampler: Any, indices: Any) -> None:
        """Asked for a new order. A sampler that is made anew for every epoch goes on with the course of its dataset."""
        course = self.course(sampler)
        self.job.withdraw(self.inner)
        self.job.place(self.inner, self.following)
        self.open[sampler] = course
        course.where, course.loop = self.made.get(sampler, course.where), self.job.caller()
        if course.turn(_Epoch(sampler.epoch, _order(indices))) and course.again in _TIMES:
            self.write(course)

    def following(self, job: Job) -> None:
        """The first batches of an epoch, in whatever steps they are."""
        job.continuous()
        job.listen(self.batch, self.backward)

    def course(self, sampler: Any) -> _Course:
        """That of this sampler, or of one over the same data that is no more: two that live side by side have two."""
        owner = sampler.dataset if getattr(type(sampler.dataset), "__weakrefoffset__", 0) else sampler
        for dataset, course in self.courses:
            if dataset() is owner and course.seed == sampler.seed and course.sampler() in (None, sampler):
                course.sampler = weakref.ref(sampler)
                return course
        self.courses.append((weakref.ref(owner), _Course(sampler)))
        return self.courses[-1][1]

    def batch(self, loader: Any, batch: Any) -> None:
        sampler = loader.sampler
        course = self.open.get(sampler) or self.open.get(getattr(loader.batch_sampler, "sampler", sampler))
        self.latest = course.current if course is not None else None
        if self.latest is not None:
            self.latest.delivered(self.job, batch)

    def backward(self, _roots: Any) -> None:
        if self.latest is not None:
            self.latest.learned += 1
            if all(each.current is None or each.current.is_known for _, each in self.courses):
                self.job.withdraw(self.inner)

    def ending(self) -> None:
        for _, course in self.courses:
            course.turn(None)
            if course.again:
                self.write(course)

    def write(self, course: _Course) -> None:
        path, line = course.where
        number = course.before.number if course.before is not None else 0
        self.job.record(
            Order(
                again=course.again,
                changed=course.changed,
                epoch=number,
                length=course.length,
                path=path,
                line=line,
                loop=course.loop,
            )
        )


def _order(indices: Any) -> int | None:
    """A mark of an order that torch's own sampler gave; None for a generator, which would be used up."""
    if type(indices) is not type(iter([])):
        return None
    inner = indices.__reduce__()[1][0]
    return zlib.crc32(f"{len(inner)} {inner[:_INDICES]}".encode())
