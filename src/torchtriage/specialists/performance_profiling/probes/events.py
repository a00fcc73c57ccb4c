"""What this room's probes write down; Loader and Stacks, which others read too, are the machinery's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtriage.examine.run.job.events import Event, Stacks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchtriage.examine.run.job.events import Where


class Aid(Event):
    """A debugging aid was on in so many OF the backward passes so far.

    path, line: what switched it on last, "" and 0 where nobody knows. calls: the lines that call that.
    """

    aid: str
    on: int
    of: int
    path: str
    line: int
    calls: Sequence[Where] = ()


class Arrivals(Event):
    """Batches that were seen to arrive on CUDA; drained: of those, when the device had run out of work."""

    seen: int
    drained: int


class Built(Event):
    """A line has built something so many times, in so many of the OVER steps since step SINCE.

    what: "optimizer", "loader", "compiled" or "moved". name: the class of what was built first, or its dataset's.
    elapsed: seconds since the first. calls: the lines that call it. same: times that it was about the same thing as
    before. Of optimizers: kept, those that had a state after a step; restored, steps in which the job loaded weights;
    module, the name of the first parameter. Of loaders: beside, steps in which another delivered; abandoned, those
    given up before their end; batches and length, what the last one has delivered and has. Of moves: their seconds.
    """

    what: str
    name: str
    path: str
    line: int
    times: int
    steps: int
    over: int
    since: int
    elapsed: float
    same: int
    kept: int
    abandoned: int
    beside: int
    restored: int
    module: str | None = None
    calls: Sequence[Where] = ()
    batches: int = 0
    length: int = 0
    seconds: float = 0.0


class ClockReadings(Event):
    """Clocks that the user's code read in quiet steps. waits: calls of synchronize() in these steps.

    spans: between a reading and the next one in the same function: (path, line of the first, line of the second, times,
    seconds of the host in all, seconds of the device in all for what was launched in between).
    """

    spans: Sequence[tuple[str, int, int, int, float, float]]
    waits: int = 0


class Fetch(Event):
    """Batches that one process has made so far, and the seconds that their samples and collate_fn took.

    workers: of the loader; 0 where the process that trains makes them. worker: the number of this one.
    """

    workers: int
    batches: int
    samples: float
    collate: float
    worker: int | None = None


class Making(Stacks):
    """The same of a worker, while it makes batches and waits to be asked for them."""


class Recompiles(Event):
    """A function, or a stretch of one between two graph breaks, that torch compiled several times.

    seconds: of all compilations. given_up: torch runs it uncompiled from now on. guard: the latest of the kind that
    failed most, and repeated how often it did. path, line: the user's line that this guard is about, else where the
    function begins. compiled: the one line that asks for a compiler. changed: lines that change what the guard holds.
    """

    name: str
    path: str
    line: int
    compiles: int
    seconds: float
    given_up: bool
    guard: str
    repeated: int
    compiled: Where | None = None
    changed: Sequence[Where] = ()


class Work(Event):
    """The work of a step, in the mean over the steps looked at since step SINCE.

    inputs: numbers that go into models. batches: numbers that loaders deliver. parameters: of all models; trainable:
    of those, the ones that learn.
    """

    since: int
    inputs: int
    batches: int
    parameters: int
    trainable: int
