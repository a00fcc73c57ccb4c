"""What the probes of distributed training write down, and nobody outside of this room reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtriage.examine.run.job.events import Event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torchtriage.examine.run.job.events import Where


class Joining(Event):
    """init_process_group is called; where: the address at which the ranks are to meet, None for a store."""

    path: str
    line: int
    where: str | None


class Unjoined(Event):
    """init_process_group raised."""


class Replica(Event):
    """What became of DistributedDataParallel `number`, around a module of class `name`, so far.

    used, bypassed: steps through it, and past it. running: the last of these in a row. averages: the job averages a
    whole model by itself. several: steps that averaged more than once, backwards: how often in all of them. spared:
    steps with a backward pass that did not average. late: such passes after a forward pass that had decided otherwise.
    size: values that learn. entered: who first called it. path, line: who last went past it. again, at: path and line
    of a backward pass that averaged for a second time.
    """

    number: int
    name: str
    used: int
    bypassed: int
    running: int
    averages: bool
    several: int
    spared: int
    backwards: int
    late: int
    size: int
    entered: Where | None = None
    path: str = ""
    line: int = 0
    again: str
    at: int


class WeightsLoaded(Event):
    """load_state_dict is called, of a module or, as `state`, of an optimizer, after `turns` updates.

    wrapped: a DistributedDataParallel holds the module.
    """

    path: str
    line: int
    wrapped: bool = False
    state: bool = False
    turns: int = 0


class WrittenBeside(Event):
    """A line wrote in place to tensors of those names, between the update `turn` of their optimizer and the next."""

    path: str
    line: int
    names: Sequence[str]
    turn: int | None


class Followed(Event):
    """ReduceLROnPlateau got metric `number`, in repr()."""

    number: int
    metric: str
    path: str
    line: int


class Handles(Event):
    """Of the asynchronous collectives `op` that a line began: how many, and how many were waited for or found done.

    waits: for any handle of the job.
    """

    path: str
    line: int
    op: str
    made: int
    done: int
    waits: int


class Save(Event):
    """torch.save to a file; mark: of its whole path."""

    mark: int
    file: str
    path: str
    line: int


class Order(Event):
    """Epochs of a shuffling DistributedSampler, made at path and line, that had the order before `again`, or another.

    epoch: that the sampler was told last. length: of an epoch on this rank. loop: who asked for the last one.
    """

    again: int
    changed: int
    epoch: int
    length: int
    path: str
    line: int
    loop: Where = ("", 0)


class Divided(Event):
    """A DataLoader; its key `loader` is the same on all ranks that made it alike, at path and line.

    dataset, sampler: their classes. sampled: who made the sampler. loop: who asked first for batches. num_replicas,
    rank: of the sampler.
    """

    loader: str
    batch_size: int | None
    path: str
    line: int
    loop: Where = ("", 0)
    dataset: str
    sampler: str
    sampled: Where | None
    num_replicas: int | None = None
    rank: int | None = None


class Shard(Event):
    """Batch `number` of a pass over a loader. marks: of its tensors by their places, None of a batch that only tells
    that there are more. values: how many each tensor has. backwards: so far.
    """

    loader: str
    pass_: int
    number: int
    backwards: int
    marks: Mapping[str, int] | None = None
    values: Sequence[int]


class Pass(Event):
    """The first pass over a loader OF so many batches: those given, the samples in them, and their smallest marks."""

    loader: str
    of: int
    batches: int
    samples: int
    kept: Sequence[int]


class Inputs(Event):
    """Pass `number` with gradients of a root of that class.

    marks, values: of what it is given, as in a Shard. over: groups of ranks among which FSDP has divided it and the
    batches. at: who calls. backwards: so far. Of the first pass: given: the line that last set what is given, 0 where
    there is none; normalised: layers that normalise by the batch of this rank alone; samples: in that batch.
    """

    root: str
    number: int
    over: Sequence[Sequence[int]] = ()
    at: Where = ("", 0)
    backwards: int = 0
    given: int = 0
    normalised: int = 0
    samples: int | None = None
    marks: Mapping[str, int] | None = None
    values: Sequence[int] = ()


class Evaluated(Event):
    """Pass number `passes` over a loader in line `loop` of a file, of which `line` makes a figure after it.

    counts: the line that counts. labelled: the figure is told with the rank that it is of. span: first and last line of
    the loop. exchanges: collectives after the pass began, until training went on. part: of the samples: replicas and
    rank of a sampler, or the first index, step, number of them, and the last.
    """

    path: str
    loop: int
    line: int
    counts: int
    labelled: bool
    span: tuple[int, int]
    passes: int
    exchanges: int
    part: Mapping[str, int]
