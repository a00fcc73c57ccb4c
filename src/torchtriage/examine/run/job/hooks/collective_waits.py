"""Where the device waits for a collective: a boundary of the timeline just before the wait, and one just after it.

The host only queues collectives, and what they are waited for is queued too: the stream that computes waits, in
`Work.wait`, in a call that waits by itself, or at the end of a backward pass of DistributedDataParallel. How long it
does is the time between two events of the device in that stream, whatever else hides the rest of the collective.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from ..accelerator import accelerator
from ..code import frames

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from ..job import Job
    from .waits import Waits

    class Timeline(Protocol):
        """What is asked of the timeline of a step."""

        stream: Any
        is_whole: bool

        def passed(self, phase: str, wait: Wait | None = None) -> bool: ...


FUNCTIONS = (
    "all_reduce", "broadcast", "reduce", "all_gather", "all_gather_into_tensor", "reduce_scatter",
    "reduce_scatter_tensor", "gather", "scatter", "all_to_all", "all_to_all_single",
)  # fmt: skip
MOST = 512  # waits of a step that are marked; in a step with more nobody knows how long it waits
COMPILED = "torch._dynamo.compiled_autograd"  # traces hooks of backward passes, while it is on


class Wait(NamedTuple):
    """A wait for OPERATION, called at path and line; bytes of its first tensor, 0 where it is not known."""

    path: str
    line: int
    operation: str
    bytes: int


class CollectiveWaits:
    """The waits of a job of several ranks, once it uses a device."""

    def __init__(self, job: Job, timeline: Timeline, host_waits: Waits) -> None:
        self.job, self.timeline, self.host_waits = job, timeline, host_waits
        self.hook, self.probe = job.placing, ""
        self.wrappers: weakref.WeakSet[Any] = weakref.WeakSet()  # each DistributedDataParallel
        self.is_inside = False  # of a call that waits: it may be made of others
        self.at_end: Any = None  # a hook of the backward pass that is under way, which can be removed
        self.wait: Wait | None = None  # at the end of that pass, once it has begun
        self.place_of_backward = ("", 0)
        self.marked = 0  # waits of the step under way

    def note_wrappers(self, job: Job) -> None:
        """Remembers each DistributedDataParallel from its construction on, whoever watches the step."""
        import torch

        if not torch.distributed.is_available():
            return

        def making(original: Any) -> Any:
            def __init__(wrapper: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it is one
                original(wrapper, *args, **kwargs)
                self.wrappers.add(wrapper)

            return __init__

        job.wrap(torch.nn.parallel.DistributedDataParallel, "__init__", making)

    def end_step(self, _step: int) -> None:
        """The first step in which the job uses a device has only shown that it does."""
        self.marked = 0
        if not self.probe and accelerator.kind and _is_distributed():
            self.probe = f"{self.hook} of collectives"
            self.job.place(self.probe, self.place)
        if self.probe:
            self.timeline.stream = accelerator.stream()

    def place(self, job: Job) -> None:
        """Takes the places of the calls that wait."""
        import torch

        job.sampled()
        distributed = torch.distributed
        job.wrap(distributed.distributed_c10d.Work, "wait", self._wrap("wait"))
        for name in (*FUNCTIONS, "barrier"):
            for owner in (distributed.distributed_c10d, distributed):
                job.wrap(owner, name, self._wrap(name))
        if hasattr(torch.nn.parallel.DistributedDataParallel, "_sync_buffers"):
            job.wrap(torch.nn.parallel.DistributedDataParallel, "_sync_buffers", self._wrap("broadcast of buffers"))
        job.on("backward", self.begin_backward)

    def _wrap(self, name: str) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            def call(*args: Any, **kwargs: Any) -> Any:
                if self.is_inside or kwargs.get("async_op"):
                    return original(*args, **kwargs)
                wait = Wait(*frames.caller(), name, _bytes((*args, *kwargs.values())))
                begun, self.is_inside = self._begin(), True
                try:
                    return original(*args, **kwargs)
                finally:
                    self.is_inside = False
                    if begun:
                        self.timeline.passed("", wait)

            return call

        return wrap

    def _begin(self) -> bool:
        """Marks that a wait begins; not in another stream than the one that computes, whose work others hide."""
        self.host_waits.end_idle()
        self.marked += 1
        if self.marked > MOST:
            self.timeline.is_whole = False
            return False
        return self.timeline.stream == accelerator.stream() and self.timeline.passed("")

    def begin_backward(self, roots: tuple[Any, ...]) -> None:
        """DistributedDataParallel waits for its averages in a callback at the end of the pass: one that is queued when
        the pass begins runs before that.
        """
        self._remove()
        is_compiled = getattr(sys.modules.get(COMPILED), "compiled_autograd_enabled", False)
        averages = any(each.require_backward_grad_sync for each in self.wrappers)
        if averages and not is_compiled and roots and roots[0].requires_grad:
            self.at_end = roots[0].register_hook(self._queue)
            self.wait, self.place_of_backward = None, frames.caller()

    def _queue(self, _gradient: Any) -> None:
        from torch.autograd import Variable

        Variable._execution_engine.queue_callback(self._end_of_computing)

    def _end_of_computing(self) -> None:
        """In a thread of autograd's, for which the one that trains waits."""
        try:
            if self._begin():
                self.wait = Wait(*self.place_of_backward, "backward", 0)
        except Exception as error:  # noqa: BLE001 - it would be the job's own, in its backward pass
            self.job.switch_off(self.probe, error)

    def pass_boundary(self, event: str) -> None:
        """Ahead of the boundary of the timeline."""
        if event == "backwarded" and self.at_end is not None:
            self._remove()
            if self.wait is not None:
                self.timeline.passed("", self.wait)

    def _remove(self) -> None:
        if self.at_end is not None:
            self.at_end.remove()
            self.at_end = None


def _is_distributed() -> bool:
    import torch

    distributed = torch.distributed
    return bool(distributed.is_available() and distributed.is_initialized() and distributed.get_world_size() > 1)


def _bytes(values: tuple[Any, ...]) -> int:
    """Of the first tensor among VALUES."""
    given = next((each for each in values if hasattr(each, "element_size")), None)
    return int(given.numel() * given.element_size()) if given is not None else 0
