"""What this room's probes write down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtriage.examine.run.job.events import Event

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchtriage.examine.run.job.events import Further


class CacheEmptied(Event):
    """A line empties the cache of the device's allocator: so many calls, in so many steps from the first of them to the
    last.

    asked: how often the allocator has asked the driver for memory since the first call.
    """

    path: str
    line: int
    calls: int
    steps: int
    first: int
    last: int
    asked: int


class CarriedState(Event):
    """A model of class `root` was given a state of its own with the graph that a backward pass has been through.

    state: the argument, or the attribute of a module. path, line: the call, or what sets the attribute. nodes: of the
    loss's graph in each backward pass that reached back to it. retained: the last of them retained its graph.
    """

    root: str
    state: str
    path: str
    line: int
    nodes: Sequence[int]
    retained: bool
    further: Further = ()


class Container(Event):
    """A container that grew with memory, and is followed.

    type: list, dict … . holder: its name. entries: how many there are. since, had: the step of the count before it was
    followed, and its entries then. holds, bytes: what the last entry was, and its size. bounded: it drops its oldest
    entries by itself. dataset: it is an attribute of a Dataset. path, line: what fills it, "" and 0 where nobody knows.
    """

    type: str
    holder: str
    entries: int
    since: int
    had: int
    holds: str
    bytes: int
    bounded: bool
    dataset: bool
    path: str
    line: int
    further: Further = ()


class Evaluating(Event):
    """A line calls a model of class `root`, with autograd on, in training mode or not."""

    root: str
    path: str
    line: int
    training: bool
    further: Further = ()


class EvaluatedWithGraph(Evaluating):
    """So many passes from there recorded graphs that no backward has gone through; nodes: of the first.

    phases: how many backward passes, at least, lie between them, and one.
    """

    passes: int
    phases: int
    nodes: int


class LearnedFrom(Evaluating):
    """At the end: a backward has gone through a graph from there, or may have."""


class Graphs(Event):
    """How many steps' graphs are alive, by their outputs and losses, of those steps that were seen.

    since: the oldest step with one; first: how many were alive when it was first that. lately: steps seen since it.
    again: graphs through which a backward of a later step went. path, line: what fills the holder, or else a line that
    called backward.
    Of one of them: kept, what of it is held ("loss", "output", the "sum" over steps, or a tensor from "within" a
    pass), with its shape; nodes of its graph, and bytes that these keep; holder, the name of what holds it; bounded,
    whether that drops its oldest entries by itself; is_on_ctx, whether it is an attribute of an autograd function's
    ctx.
    """

    path: str
    line: int
    alive: int
    seen: int
    since: int
    lately: int
    first: int | None = None
    again: int = 0
    kept: str | None = None
    shape: Sequence[int] = ()
    nodes: int = 0
    bytes: int = 0
    holder: str | None = None
    bounded: bool = False
    is_on_ctx: bool = False
    further: Further = ()


class InnerGraphs(Graphs):
    """The same by all nodes below the losses, of steps some of which are left out."""


class Host(Event):
    """Bytes on the host: this process's virtual and private ones, and all private ones of its workers.

    generation: counts the sets of workers; a loader without persistent ones starts new ones for each epoch.
    """

    virtual: int
    private: int
    workers: int
    theirs: int
    generation: int


class MemoryPeak(Event):
    """The most bytes that tensors have held so far on this process's device, of CAPACITY, reached in step AT.

    phase: "forward" (the loss included), "backward", "optimizer", "evaluation", or "other". gradients: bytes of
    gradients at that moment. others: bytes that were neither parameters, buffers, gradients nor states when the
    step's forward pass began, nor what that was given: what stays from step to step without being one of those.
    steady: the most that was seen in use between the phases of later steps than the first.
    """

    at: int
    phase: str
    bytes: int
    gradients: int
    others: int = 0
    steady: int = 0
    capacity: int | None = None


class OutOfMemory(Event):
    """The device had no memory left, in a PHASE as those of a peak. message: of the error.

    path, line: the innermost line of the user's that is known. times, steps: so far at that line, and in how many
    steps. parameters, buffers, gradients, states: bytes of each then. others: as of a peak; None before any forward
    pass. allocated, reserved: bytes of tensors and of the allocator. free: bytes of the device that no process holds,
    of its CAPACITY. is_in_handler: an earlier such error was being handled, whose traceback keeps what it met alive.
    """

    message: str
    path: str
    line: int
    phase: str
    times: int = 1
    steps: int = 1
    parameters: int = 0
    buffers: int = 0
    gradients: int = 0
    states: int = 0
    others: int | None = None
    allocated: int | None = None
    reserved: int | None = None
    free: int | None = None
    capacity: int | None = None
    is_in_handler: bool = False


class Residents(Event):
    """Bytes of tensors on this process's device, after the second step of an optimizer."""

    parameters: int
    buffers: int
    gradients: int
    states: int


class RetainedGraph(Event):
    """A line that retains graphs: so many were looked at, and idle ones let go before anything went through again.

    needed: a backward did so. maybe: its function asks for gradients, or has a backward that was not seen at work.
    """

    path: str
    line: int
    looked: int
    idle: int
    needed: bool
    maybe: bool


class SecondEpoch(Event):
    """The longest loader begins its second pass."""


class WorkersFill(Event):
    """What a loader with workers fills in each of them: the attribute, as it is written there, file and line."""

    places: Sequence[tuple[str, str, int]]


class Elements(Event):
    """How many numbers a line read one by one out of larger tensors in the step AT, the most of all lines, and the
    seconds that one read takes.
    """

    at: int
    path: str
    line: int
    reads: int
    seconds: float
