"""Where the host waits for the device: the user's lines, how long, and whether the device then had anything to do."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from ..accelerator import accelerator
from ..code.frames import is_own, path_of
from ..events import HostWaits
from . import transfers
from .races import Races
from .streams import Streams

if TYPE_CHECKING:
    from types import FrameType

    from ..job import Job

    Arguments = tuple[Any, ...]
    Options = dict[str, Any]
    Key = tuple[str, int, str]  # file, line and call

READING = ("item", "tolist", "nonzero", "__bool__", "__float__", "__int__", "__index__", "__repr__")
"""Methods of a tensor that return once the device has computed it."""
DEPENDING = (
    "allclose", "argwhere", "bincount", "equal", "masked_select", "nonzero", "repeat_interleave", "unique",
    "unique_consecutive", "where",
)  # fmt: skip
"""Functions, and methods of that name, whose answer or its shape depends on values: torch tags their operators with
data_dependent_output or dynamic_output_shape, and some wait for certain arguments only. Indexing by a mask is one as
well, and left alone: to wrap it would cost each sample that a dataset takes out of a tensor.
"""
COPYING = ("to", "cpu", "copy_")  # and what is named after the device, as `cuda`
MARKED = 256  # waits of a step; what more of them cost is counted where the device idles after them
ENOUGH = 128  # steps that are watched: what waits in every step has been seen, and the methods are torch's own again
OF_TENSORS = ("/torch/_tensor.py", "/torch/_tensor_str.py")  # which convert and print them for whoever asked


class Totals:
    """What one call of a line has cost in a step: nanoseconds, but for the number of calls.

    waited: of the host. worked: of that, for which the device did what had been queued. idle: of the device, in the
    wait and after it. lost: by which the step would be shorter at least without the wait. copied: in which the device
    did nothing but take its data.
    """

    __slots__ = ("calls", "copied", "idle", "lost", "waited", "worked")

    def __init__(self) -> None:
        self.calls = self.waited = 0
        self.idle = self.lost = self.copied = self.worked = 0.0

    def row(self) -> tuple[float, ...]:
        """The number of calls, and seconds."""
        times = (self.waited, self.idle, self.lost, self.copied, self.worked)
        return (self.calls, *(round(each / 1e9, 9) for each in times))


class Wait:
    """A wait for all that was queued, and what followed it.

    before, after: events of the device just before and after it, where it has any; the device reaches the first when it
    has done what was queued, so that what lies between them it spends on nothing but the wait: the host could have gone
    on. For the rest of the wait the device worked; of the idle time after it that much would have overlapped with this
    work. spent, idle: nanoseconds of the host, and of the device afterwards. is_first: something was launched between
    the wait before and this one; else they are one.
    """

    __slots__ = ("after", "before", "idle", "is_first", "key", "spent")

    def __init__(
        self, key: Key, spent: float, before: Any = None, after: Any = None, *, is_first: bool = True
    ) -> None:  # fmt: skip
        self.key, self.spent, self.before, self.after, self.is_first = key, spent, before, after, is_first
        self.idle = 0

    @property
    def is_measured(self) -> bool:
        """Whether both events have been reached, and may be asked."""
        return self.after is not None and not accelerator.is_capturing() and bool(self.after.query())

    @property
    def useless(self) -> float:
        """Nanoseconds of it for which the device certainly had nothing to do any more."""
        if not self.is_measured:
            return 0.0
        return min(max(float(self.before.elapsed_time(self.after)) * 1e6, 0.0), self.spent)


class Waits:
    """The waits of the step under way, by line; and since when the device has certainly had nothing to do.

    After a call that has waited for all that was queued, the device is idle for as long as no tensor is given memory:
    what computes nothing new launches nothing. Operations in place are not seen, but another wait or a boundary of the
    step mostly comes before them.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.hook, self.probe = job.placing, ""
        self.races, self.streams = Races(job), Streams(job)
        self.totals: dict[Key, Totals] = {}
        self.copies: list[tuple[Totals, Any, Any]] = []
        self.waits: list[Wait] = []  # for all that was queued
        self.is_inside = False  # of a call that waits
        self.is_evaluating = False  # from a pass that is no training's to the next boundary of a step
        self.can_count = True  # whether the device tells how many tensors it has given memory
        self.steps = 0
        self.latest: Wait | None = None  # since which the device has nothing to do
        self.allocations: int | None = None
        self.since = self.booked = self.fetching = 0

    def place(self, job: Job) -> None:
        """Takes the places of the calls that wait."""
        import torch

        job.sampled()
        for name in (*READING, *COPYING, accelerator.kind):
            if hasattr(torch.Tensor, name):
                job.wrap(torch.Tensor, name, functools.partial(self.wrap_method, name))
        for owner in (torch, torch.Tensor):
            for name in DEPENDING:
                if hasattr(owner, name) and not (owner is torch.Tensor and name in READING):
                    job.wrap(owner, name, functools.partial(self.wrap_depending, name))
        for owner in (*accelerator.modules, *transfers.classes_of_order()):
            if hasattr(owner, "synchronize"):
                job.wrap(owner, "synchronize", self.wrap_synchronize)

    def wrap_method(self, name: str, original: Any) -> Any:
        """A method of tensors, which waits where it brings something to the host, or from memory that is not pinned."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.is_inside:
                return original(*args, **kwargs)
            if name in READING:
                return (self.wait if accelerator.has(args[0]) else _call)(name, original, args, kwargs)
            return (self.copy if transfers.may_cross(name, args, kwargs) else _call)(name, original, args, kwargs)

        return call

    def wrap_depending(self, name: str, original: Any) -> Any:
        """What may wait: that it has shows in that the device has done all that was launched before the call."""

        def call(*args: Any, **kwargs: Any) -> Any:
            first = args[0] if args else kwargs.get("input")
            is_here = not self.is_inside and hasattr(first, "device") and accelerator.has(first)
            before = accelerator.mark(timed=True) if is_here else None
            if before is None:
                return original(*args, **kwargs)
            result, spent = self._run(original, args, kwargs)
            if before.query():
                self.add(name, spent, before)
            return result

        return call

    def wrap_synchronize(self, original: Any) -> Any:
        """One of the device, or of a stream or event, which waits for a part of what was queued."""

        def call(*args: Any, **kwargs: Any) -> Any:
            if self.is_inside:
                return original(*args, **kwargs)
            is_partial = bool(args) and hasattr(args[0], "query")
            return self.wait("synchronize", original, args, kwargs, is_partial=is_partial)

        return call

    def wait(self, name: str, original: Any, args: Arguments, kwargs: Options, *, is_partial: bool = False) -> Any:
        """What ORIGINAL returns, for which the host waits."""
        # a wait for the whole device may be one for other streams, whose work no event in this one shows
        before = None if name == "synchronize" else self._mark()
        result, spent = self._run(original, args, kwargs)
        self.add(name, spent, before, is_partial=is_partial)
        return result

    def copy(self, name: str, original: Any, args: Arguments, kwargs: Options) -> Any:
        """The same of what may be a copy between host and device: the host waits unless it asks not to, and even then
        where its memory is not pinned and the data come from there.
        """
        source = transfers.source_of(name, args, kwargs)
        was_on_device, is_non_blocking = accelerator.has(source), transfers.is_non_blocking(args, kwargs)
        before = self._mark() if was_on_device else accelerator.mark(timed=True)
        result, spent = self._run(original, args, kwargs)
        if was_on_device == accelerator.has(result):
            return result
        is_pinned = (is_non_blocking or not was_on_device) and transfers.is_pinned(result if was_on_device else source)
        if is_pinned and is_non_blocking:
            self.races.note(name, source, result)
            self.streams.note(name, result)
        elif was_on_device:
            if not is_non_blocking:
                self.add(name, spent, before)
        else:
            memory = "pinned" if is_pinned else "pageable"
            totals = self.add(f"{name} from {memory} memory", spent, is_partial=is_non_blocking)
            if before is not None and (after := accelerator.mark(timed=True)) is not None:
                self.copies.append((totals, before, after))
        return result

    def _run(self, original: Any, args: Arguments, kwargs: Options) -> tuple[Any, int]:
        """What ORIGINAL returns, and the nanoseconds that it took."""
        self.update_idle()
        began = accelerator.clock()
        self.is_inside = True
        try:
            return original(*args, **kwargs), accelerator.clock() - began
        finally:
            self.is_inside = False

    def _mark(self) -> Any:
        """An event ahead of a wait; None where the step has had many."""
        return accelerator.mark(timed=True) if len(self.waits) < MARKED else None

    def add(self, name: str, spent: int, before: Any = None, *, is_partial: bool = False) -> Totals:
        """A wait has ended, ahead of which was the event BEFORE. If it was for all that was queued, the device has
        nothing to do from now on.
        """
        path, line = ("", 0) if self.is_evaluating else _user_line(sys._getframe(1))
        totals = self.totals.setdefault(key := (path, line, name), Totals())
        totals.calls += 1
        totals.waited += spent
        is_first, self.latest = self.latest is None, None
        if not is_partial:
            after = accelerator.mark(timed=True) if before is not None else None
            self.latest = Wait(key, spent, before, after, is_first=is_first)
            self.waits.append(self.latest)
            self.allocations = accelerator.allocations()
            self.can_count = self.allocations is not None
            self._restart_idle()
        return totals

    def update_idle(self, *, is_made_here: bool = False) -> None:
        """Adds the time since the last wait, if nothing was launched in it: less what probes took, and the wait for a
        batch, unless this thread has made it: it would have done so beside the device.
        """
        if self.latest is None:
            return
        now, job = accelerator.clock(), self.job
        if self.allocations is None or accelerator.allocations() != self.allocations:
            self.latest = None
            return
        fetching = job.phases.spent("data")
        batches = fetching - (self.fetching if fetching >= self.fetching else 0)
        self.latest.idle += max(
            now - self.since - (job.governor.booked - self.booked) - (0 if is_made_here else batches), 0
        )
        self._restart_idle()

    def end_idle(self) -> None:
        """The device is given work that needs no memory."""
        self.update_idle()
        self.latest = None

    def _restart_idle(self) -> None:
        self.since, self.booked = accelerator.clock(), self.job.governor.booked
        self.fetching = self.job.phases.spent("data")

    def pass_boundary(self, event: str, *, is_made_here: bool = False) -> None:
        """A phase of the step has ended. IS_MADE_HERE: with a batch that no worker has made."""
        self.update_idle(is_made_here=is_made_here)
        self.is_evaluating = self.is_evaluating and event == "forwarded"

    def start_evaluation(self, *_: Any) -> None:
        """A pass begins that is no training's: an evaluation, or one that asks a policy what to do next. Who waits for
        its result needs it.
        """
        self.is_evaluating = True

    def restart(self) -> None:
        """A window begins: nobody has seen what happened before it."""
        self.totals, self.copies, self.waits, self.latest = {}, [], [], None

    def end_step(self, step: int) -> None:
        """Writes down the waits of the step, also that there were none.

        The first step in which the job uses a device has only shown that it does.
        """
        if not self.probe and accelerator.kind:
            self.probe = f"{self.hook} of {accelerator.kind}"
            self.job.place(self.probe, self.place)
            return
        if not self.probe or self.steps >= ENOUGH or self.probe in self.job.lost:  # not that nothing waits
            return
        self.races.end_step(step)
        self.streams.end_step()
        for totals, before, after in self.copies:
            if not accelerator.is_capturing() and after.query():
                totals.copied += before.elapsed_time(after) * 1e6
        hidden = self._measure_waits()
        waits = [(*key, *totals.row()) for key, totals in self.totals.items()]
        self.job.record(HostWaits(at=step, waits=waits, is_counted=self.can_count))
        self.totals, self.copies, self.waits = {}, [], []
        if self.latest is not None:  # nothing is launched yet: it goes on
            self.latest = Wait(self.latest.key, hidden)
            self.waits.append(self.latest)
        self.steps += 1
        if self.steps >= ENOUGH:
            self.latest = None
            self.races.withdraw()
            self.streams.withdraw()
            self.job.withdraw(self.probe)

    def _measure_waits(self) -> float:
        """Adds what the waits of the step have cost. The nanoseconds of the last one that idle time may still overlap
        with.
        """
        hidden = 0.0
        for wait in self.waits:
            totals, useless = self.totals.setdefault(wait.key, Totals()), wait.useless
            hidden = (0.0 if wait.is_first else hidden) + wait.spent - useless
            overlapped = min(float(wait.idle), hidden)
            hidden -= overlapped
            totals.worked += wait.spent - useless if wait.is_measured else 0.0
            totals.idle += useless + wait.idle
            totals.lost += useless + overlapped
        return hidden


def _call(_name: str, original: Any, args: Arguments, kwargs: Options) -> Any:
    return original(*args, **kwargs)


def _user_line(frame: FrameType | None) -> tuple[str, int]:
    """The user's line that calls; ("", 0) where a library does, whose wait no line of the user's can leave out."""
    while frame is not None and (is_own(frame.f_code) or frame.f_code.co_filename.endswith(OF_TENSORS)):
        frame = frame.f_back
    path = path_of(frame.f_code) if frame is not None else None
    return (path, frame.f_lineno) if frame is not None and path is not None else ("", 0)
