"""What the probes of mixed precision write down; what other rooms read is in examine/run/job/events.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from torchtriage.examine.run.job.events import Event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torchtriage.examine.run.job.events import Further


class Recurrence(Event):
    """What keeps happening at a line, and is written down now and then. times: so far."""

    path: str
    line: int
    times: int = 0


# The calls of a GradScaler


class ScalerStepped(Event):
    """A line lets a scaler step: written once."""

    path: str
    line: int


class ScalerBypassed(Recurrence):
    """An optimizer stepped by itself on gradients of a scaled loss (how: "step"), or through the scaler on gradients of
    a loss that was not scaled (how: "backward"; mixed: another was).

    scale: as last read, on a device some steps old; None before the first update.
    """

    how: str
    optimizer: str
    mixed: bool = False
    scale: float | None


class ScalerRaised(Recurrence):
    """The scaler refused a call. Since its last update there were so many:

    direct: steps past it. asked: unscale_ and steps through it. backwards: backward passes. stepped: path and line of
    the last step through it, "" and 0 if none. whole: all of that was seen. added: a pass has added to gradients that
    unscale_ had divided.
    """

    call: str
    error: str
    message: str
    stepped: tuple[str, int]
    direct: int
    asked: int
    backwards: int
    whole: bool
    added: bool


class ScalerRenewed(Recurrence):
    """An optimizer was stepped so many times through scalers that nobody updated."""

    steps: int


class UnscaledAdded(Recurrence):
    """A scaled backward added to gradients that unscale_, at that line, had divided after so many backward passes."""

    parts: int


# Formats


class AutocastBackward(Recurrence):
    """A backward pass began under autocast to that format."""

    format: str


class AutocastUnused(Recurrence):
    """The model ran under autocast to that format, and its graph has so many matrix products, none of them in it.

    path, line: of the statement that turned autocast on, "" and 0 if unknown. found: the formats of the graph.
    """

    format: str
    products: int
    found: Sequence[str]


class AutocastUsed(Event):
    """After it was unused: a graph held the format of autocast."""


class ScaledBfloat16(Recurrence):
    """A scaler took a step on losses whose graphs hold bfloat16 and no float16. path, line: where it is built."""


class UnscaledFloat16(Recurrence):
    """An optimizer stepped on gradients of a float16 graph that nothing has scaled.

    cast: how many OF its parameters the graph casts to float16. off: a scaler that is switched off took the step.
    """

    optimizer: str
    cast: int
    of: int
    off: bool
    further: Further = ()


class Cast(Event):
    """A module whose parameters got another format ("float16"), and the line that asked for it."""

    module: str
    format: str
    path: str
    line: int


class HalfTrained(Event):
    """An optimizer of torch's is about to update float16 parameters: how many OF those with a gradient, and the first.

    refused: a scaler was asked to, which refuses. cast: path and line are those of the cast, not those of the step.
    """

    optimizer: str
    trained: int
    of: int
    first: str | None
    refused: bool
    cast: bool
    path: str
    line: int


class HalfMoved(Event):
    """The share of a float16 parameter's numbers with a gradient that an update changed, at a step."""

    at: int
    parameter: str | None
    share: float


class AutocastCost(Event):
    """Seconds of a forward pass on the CPU, under autocast to that format and without, in pairs. why: there are few."""

    format: str
    why: str
    pairs: Sequence[tuple[float, float]]
    path: str
    line: int


class Misaligned(TypedDict):
    """Linear layers with rows that are not whole units of 16 bytes; weights: their numbers.

    named: the first few, each with the sizes of its input and output.
    """

    layers: int
    weights: int
    named: Sequence[tuple[str | None, int, int]]


class Products(Event):
    """The linear layers on a GPU: how many, and how many numbers their weights are.

    misaligned: by the bytes of a number, "2" and "4". capability: of the GPU, major and minor. matmul: the precision of
    float32 products, "highest" without TF32. dtype: of the first layer.
    """

    layers: int
    weights: int
    misaligned: Mapping[str, Misaligned]
    capability: Sequence[int]
    matmul: str
    dtype: str


# Accumulation and schedules


class Accumulated(Event):
    """Several backward passes filled the gradients with which an optimizer steps.

    rate: initial learning rate; None if it is no plain number. divided: the script divides the rate by the number of
    passes; None if it cannot be read. kinds: of losses that are plain means, "" for others. places: how many places the
    passes began at. reached: how many different sets of parameters they reached. calls: of the model, by pass. batches:
    that came meanwhile, from so many loaders. length: of the last batch. lengths: of the inputs, by pass. delivered:
    each call took a tensor of the batch as it came. again: how many passes have targets, inputs or a graph in common
    with the one before. fed_back: an output was an input. edited: something unknown changed the gradients. path, line:
    of the first backward. root: the line that made its loss, 0 if unknown.
    """

    optimizer: str
    rate: float | None
    divided: bool | None = None
    passes: int
    kinds: Sequence[str]
    places: int
    reached: int
    calls: Sequence[int]
    batches: int
    loaders: int
    length: int
    lengths: Sequence[int]
    delivered: bool = False
    again: int
    fed_back: bool
    edited: bool
    path: str
    line: int
    root: int = 0


class ScheduleOnSkips(Event):
    """Of an optimizer, in the steps that were watched: updates taken, skips, and advances of its schedulers.

    followed: skips that an advance followed; path, line and scheduler are those of the first, at step `first`.
    """

    scheduler: str
    taken: int
    skips: int
    advances: int
    followed: int
    first: int
    path: str
    line: int
