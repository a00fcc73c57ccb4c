"""Whether a forward pass begins before a copy of another stream that it is given has ended.

An event of the device behind the copy, and one at the begin of the pass: where streams are ordered, by whatever means,
the second one is never reached first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..accelerator import accelerator
from ..code import frames
from ..events import StreamUses
from .transfers import Region, classes_of_order, region_of, tensors_in

if TYPE_CHECKING:
    from ..job import Job

    Place = tuple[str, int, str]  # file, line and call

ORDERING = ("wait_stream", "wait_event", "wait", "synchronize")
PREPARING = ("float", "half", "bfloat16", "__sub__", "__mul__", "__truediv__")
"""Methods by which a batch is prepared: what they make of a copy in its stream is followed in its place."""
MOST = 64  # copies, and passes, that are followed at a time


class SideCopy:
    """A copy in another STREAM than the one that computes. mark: the device reaches it when the copy has ended."""

    __slots__ = ("mark", "place", "region", "stream")

    def __init__(self, place: Place, region: Region, stream: Any, mark: Any) -> None:
        self.place, self.region, self.stream, self.mark = place, region, stream, mark


class Use:
    """COPIES that a forward pass in STEP is given. mark: the device reaches it where the pass begins."""

    __slots__ = ("copies", "mark", "step")

    def __init__(self, step: int, copies: list[SideCopy], mark: Any) -> None:
        self.step, self.copies, self.mark = step, copies, mark

    @property
    def is_over(self) -> bool:
        """Whether the device has reached all of the marks."""
        return bool(self.mark.query()) and all(each.mark.query() for each in self.copies)

    def rows(self) -> list[tuple[Any, ...]]:
        """Of each copy: path, line, call, and the seconds for which it went on after the begin of the pass."""
        return [(*each.place, max(self.mark.elapsed_time(each.mark), 0.0) / 1e3) for each in self.copies]


class Streams:
    """The copies of other streams, and the passes that they are given to.

    stream: in which the last pass has begun. orders: calls so far that order streams: one in a pass may wait for the
    copy before it is used.
    """

    def __init__(self, job: Job) -> None:
        self.job, self.probe = job, f"{job.placing} of streams"
        self.stream: Any = None
        self.copies: dict[int, SideCopy] = {}
        self.uses: list[Use] = []
        self.opened: Use | None = None
        self.orders = self.orders_before = 0
        self.is_wanted = self.is_placed = False

    def note(self, call: str, result: Any) -> None:
        """A copy has been queued that asks the host not to wait, from or to pinned memory."""
        stream = accelerator.stream() if self.stream is not None and accelerator.has(result) else None
        if stream is None or stream == self.stream or stream.device != result.device:
            return
        self.is_wanted = True
        if self.is_placed:
            self._follow((*frames.caller(), call), result, stream)

    def _follow(self, place: Place, tensor: Any, stream: Any) -> None:
        """TENSOR comes of the copy at PLACE, in STREAM, which is the current one."""
        region, mark = region_of(tensor), accelerator.mark(timed=True)
        if region is not None and mark is not None:
            if len(self.copies) >= MOST:
                self.copies = {}
            self.copies[region.key] = SideCopy(place, region, stream, mark)

    def begin_pass(self, args: Any, kwargs: Any) -> None:
        """A root module is about to run."""
        self.stream, self.opened = accelerator.stream(), None
        if not self.copies:
            return
        regions = [region for each in tensors_in((args, kwargs)) if (region := region_of(each)) is not None]
        copies = [self.copies.pop(each.key) for each in regions if each.key in self.copies]
        if copies and len(self.uses) < MOST and (mark := accelerator.mark(timed=True)) is not None:
            self.opened, self.orders_before = Use(self.job.step, copies, mark), self.orders

    def end_pass(self, _module: Any, _output: Any) -> None:
        """It has run: if it has waited for anything, nobody knows what for."""
        if self.opened is not None and self.orders == self.orders_before:
            self.uses.append(self.opened)
        self.opened = None

    def _place(self, job: Job) -> None:
        import torch

        job.sampled()
        for owner in (*accelerator.modules, *classes_of_order()):
            for name in ORDERING:
                if hasattr(owner, name):
                    job.wrap(owner, name, self._wrap_ordering)
        for name in PREPARING:
            job.wrap(torch.Tensor, name, self._wrap_preparing)

    def _wrap_preparing(self, original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            region = region_of(args[0]) if self.copies and accelerator.has(args[0]) else None
            copy = self.copies.get(region.key) if region is not None else None
            if copy is not None and result is not args[0] and copy.stream == accelerator.stream():
                self._follow(copy.place, result, copy.stream)
            return result

        return call

    def _wrap_ordering(self, original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.orders += 1
            return original(*args, **kwargs)

        return call

    def settle(self) -> None:
        """Writes down the uses whose marks the device has reached."""
        if not accelerator.is_capturing():
            for use in [each for each in self.uses if each.is_over]:
                self.uses.remove(use)
                self.job.record(StreamUses(at=use.step, uses=use.rows()))

    def end_step(self) -> None:
        """Looks for uses as soon as another stream has copied."""
        self.settle()
        if self.is_wanted and not self.is_placed:
            self.is_placed = True
            self.job.place(self.probe, self._place)

    def withdraw(self) -> None:
        """Enough has been seen."""
        self.copies, self.uses, self.opened = {}, [], None
        if self.is_placed:
            self.job.withdraw(self.probe)
