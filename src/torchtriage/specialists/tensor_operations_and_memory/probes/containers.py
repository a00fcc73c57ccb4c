"""What a run writes down about containers that only grow."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchtriage.examine.run.job.events import replace

from .events import Container, SecondEpoch
from .fillings import filled_at, told_beside
from .holders import GROWING, Looks, known_as

if TYPE_CHECKING:
    from torchtriage.examine.run.job.accelerator import Accelerator
    from torchtriage.examine.run.job.job import Job

_EARLY = 256  # steps in which memory is looked at eight times as often
_LOOKS, _FOLLOWS = "tensor_operations_and_memory/containers seen", "tensor_operations_and_memory/containers followed"
_GROWN = 8 << 20  # bytes of growth that make it worth counting what is there: a count takes tens of milliseconds


def containers(job: Job) -> None:
    """The list, dict, set or deque that grew with memory, its length to the end; where a second epoch began."""
    watch = _Containers(job)
    job.listen(watch.begun, watch.ending)
    job.place(_LOOKS, watch.place)


class _Containers:
    """Counts containers twice, with growth of memory between the counts, and follows the one that grew most.

    It is held while it is followed, and let go in the step in which nobody else holds it any more.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.looks = Looks()
        self.last, self.longest, self.epoch = -1, 0, False
        self.followed: Any = None
        self.restart()

    def place(self, job: Job) -> None:
        job.spaced()
        job.listen(self.iterated)

    def restart(self) -> None:
        """The steps are numbered anew, and so is growth."""
        self.base = self.told = 0
        self.before: tuple[int, dict[int, int]] = (0, {})
        if self.followed is not None:
            self.job.withdraw(_FOLLOWS)
        self.followed = None
        self.event: Container | None = None  # what is told of it

    def begun(self, loader: Any, given: int) -> None:
        """The longest loader, which is no validation's, is in its second epoch once it has given its length."""
        if self.epoch:
            return
        length = _length(loader)
        self.longest = max(self.longest, length)
        self.epoch = given >= length == self.longest > 0
        if self.epoch:
            self.job.record(SecondEpoch())

    def iterated(self, step: int) -> None:
        if step < self.last:
            self.restart()
        self.last = step
        if self.followed is None and not step % (8 if step < _EARLY else 64) and self.looks.due():
            used = _used(self.job.accelerator)
            if not self.base:
                self.base = used
            elif used > self.base + _GROWN:
                self.base = used
                self.looks.take(self.look)

    def follow(self, step: int) -> None:
        if step < self.last or sys.getrefcount(self.followed) <= 2:
            self.restart()
        self.last = step
        if step >= self.told + max(8, step // 10):
            self.tell()

    def ending(self) -> None:
        self.tell()

    def tell(self) -> None:
        if self.event is not None:
            self.told = self.last
            self.job.record(replace(self.event, entries=len(self.followed)))

    def look(self) -> None:
        """Counts; and follows what has grown since the last count, if the user knows it by a name."""
        step, before = self.before
        count = {id(each): len(each) for each in gc.get_objects() if type(each) in GROWING and len(each) >= 4}
        self.before = self.last, count
        turns = self.last - step
        grown = {each: size - before[each] for each, size in count.items() if size - before.get(each, size) >= 2}
        found = [each for each in gc.get_objects() if id(each) in grown and type(each) in GROWING and each]
        found = [each for each in found if grown[id(each)] >= turns // 4 and each is not before and each is not count]
        weights = {id(each): grown[id(each)] * _size(_last(each)) for each in found}
        found = [each for each in found if weights[id(each)] >= _GROWN // 8]
        for each in sorted(found, key=lambda each: -weights[id(each)])[:2]:
            holder = known_as(self.job, each)
            if holder:
                (path, line), item = (*filled_at(self.job, holder), ("", 0))[0], _last(each)
                self.event = Container(
                    type=type(each).__name__, holder=holder.name, entries=len(each), since=step, had=before[id(each)],
                    holds=_described(item), bytes=_size(item), bounded=holder.bounded, dataset=holder.dataset,
                    path=path, line=line, further=told_beside(self.job, holder),
                )  # fmt: skip
                self.followed, self.before = each, (0, {})
                self.job.place(_FOLLOWS, lambda job: job.on("iterated", self.follow))
                self.tell()
                break


def _length(loader: Any) -> int:
    with suppress(TypeError, NotImplementedError):  # a stream has no length
        return len(loader)
    return 0


def _used(accelerator: Accelerator) -> int:
    """Bytes allocated on the device in use, or else resident and not in a mapped file; 0 where nobody tells."""
    if accelerator.kind:
        return accelerator.memory().get("allocated", 0)
    try:
        resident, shared = Path("/proc/self/statm").read_bytes().split()[1:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def _last(container: Any) -> Any:
    """The entry that came last, where there is an order."""
    if isinstance(container, dict):
        return container[next(reversed(container))]
    return next(iter(container)) if isinstance(container, set) else container[-1]


def _size(item: Any) -> int:
    parts = list(item.values()) if isinstance(item, dict) else item
    if isinstance(parts, (tuple, list)):
        first = parts[:16]
        return sum(map(_size, first)) * len(parts) // max(len(first), 1) + sys.getsizeof(item)
    nbytes = getattr(item, "nbytes", 0)
    return sys.getsizeof(item) + (nbytes if isinstance(nbytes, int) else 0)


def _described(item: Any) -> str:
    shape = getattr(item, "shape", None)
    return f"{type(item).__name__}{tuple(shape)}" if isinstance(shape, tuple) else type(item).__name__
