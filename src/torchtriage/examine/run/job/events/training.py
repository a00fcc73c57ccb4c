"""What probes of one room write, and others read, too: loaders, losses, gradients, modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from .event import Event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NotRequired

    from .event import Further, Where


class Loader(Event):
    """A DataLoader, when its first pass begins. built: where. collate: where its function stands.

    dataset: the class. source, path, line: the user's function that makes a sample, and where that begins.
    """

    dataset: str = ""
    source: str = ""
    path: str | None = None
    line: int | None = None
    collate: Where | None = None
    built: Where | None = None
    length: int | None = None
    batch_size: int | None = None
    num_workers: int = 0
    pin_memory: bool = False
    persistent_workers: bool = False
    prefetch_factor: int | None = None


class Stacks(Event):
    """Where the watched thread stood since step SINCE, by samples EVERY so many seconds; parts: how many, by phase.

    lines: phase, file, line, function, whether the phase calls that, and samples. calls: the same of lines that stand
    or call, with their depth from 0 before the samples. frames: file, line, function. stacks: step, part of it, which
    library the innermost line was in ("torch", "training" for what every training has to call, "" for others and
    none), whether Python was interpreted, how many of the frames the phase calls, the numbers of the frames from the
    innermost outwards, samples, and nanoseconds since the samples before, without the wait for a CPU.
    loop: the lines that end a step, the innermost first. around: files and functions that these are in. nodes: of
    autograd, made in a step. evaluated: steps with a pass that does not learn; again: those of them on the same batch
    as in the step before.
    """

    since: int = 0
    loop: Sequence[Where] = ()
    samples: int = 0
    every: float = 0.0
    parts: Mapping[str, int] = {}
    lines: Sequence[tuple[str, str, int, str, bool, int]] = ()
    calls: Sequence[tuple[str, str, int, str, bool, int, int]] = ()
    frames: Sequence[tuple[str, int, str]] = ()
    stacks: Sequence[tuple[int, str, str, bool, int, Sequence[int], int, int]] = ()
    nodes: float = 0.0
    around: Sequence[tuple[str, str]] = ()
    again: int = 0
    evaluated: int = 0


class Made(Event):
    """Layers with weights that a line makes anew within forward passes.

    layer: their class. passes: in how many OF the passes since the first. made: parameters in all. kept: how many of
    them the graph held after their pass. touched: how many had values set by hand. size: numbers of one pass. module:
    path of the module whose forward makes them.
    """

    path: str
    line: int
    layer: str
    passes: int
    of: int
    made: int
    kept: int
    touched: int
    size: int
    module: str | None


class Unfilled(Event):
    """A parameter that its class makes of memory, and that nobody had filled by the end of the first forward pass.

    path, line: where it is made. module: its own path in the model. smallest, largest: sizes of the finite numbers
    among those looked at. finite: how many OF these. strange: some are smaller or larger than any initialisation makes
    them. zero: all bits are 0. by_hand: its class works on .data, so that zeros may have been written.
    """

    class_: str
    path: str
    line: int
    shape: Sequence[int]
    module: str
    smallest: float
    largest: float
    finite: int
    strange: bool
    zero: bool
    by_hand: bool
    of: int


class Hooks(Event):
    """Hooks that one line has put on one module or parameter, and that are alive.

    class_, module: the owner's class, and its path in the model. list: which hooks they are, as "forward_hooks".
    """

    class_: str
    path: str
    line: int
    alive: int = 0
    list: str
    module: str | None


class Bad(TypedDict):
    """A tensor of a batch: how many OF its values are bad, NaN or infinity, and in which samples, the first three."""

    name: str
    value: str
    bad: int
    of: int
    samples: Sequence[int]
    shape: Sequence[int]


class Batch(TypedDict):
    """A batch that holds what is not finite. index: among those of its loader over that DATASET, whose batches are
    taken in that line; None where no loader gave it.
    """

    index: int | None
    tensors: Sequence[Bad]
    dataset: NotRequired[str]
    path: NotRequired[str]
    line: NotRequired[int]
    further: NotRequired[Further]


class NonFinite(Event):
    """The first loss or gradient that is not finite, and what made it so, as far as a replay tells.

    seen: "loss", "gradient", or "late": one of both, read a step late. at: the step. stage: "forward" or "backward",
    of an operation (op) in a module (of class_) of a root module; "parameter" or "input", which that was given; "loss",
    in a chain of operations after all modules, the last first, of which at_op alone has no finite value or slope
    everywhere; "unknown", and why. value: what the operation gave, and whether it persists without the autocast. bad:
    how many OF the gradients, and the nearest to the loss. batch: where that held such values itself.
    """

    seen: str = ""
    at: int | None = None
    stage: str = ""
    why: str | None = None
    path: str | None = None
    line: int | None = None
    module: str | None = None
    class_: str = ""
    root: str = ""
    op: str = ""
    value: str = ""
    autocast: str | None = None
    persists: bool = False
    parameter: str = ""
    chain: Sequence[str] = ()
    at_op: str | None = None
    bad: int = 0
    of: int = 0
    nearest: str = ""
    batch: Batch | None = None
    further: Further = ()


class Guess(Event):
    """A look at a loss function that learns: what it gave, and what guesses would cost.

    at: the step. classes: 0 for a regression. summed: over so many answers, where it is a sum. alone: nothing else is
    in the loss. others: loss functions beside it. prior: the cost of the best constant guess. floor: that of a perfect
    answer. mark: tells batches apart. value and all that may be None is read later from a device, or never.
    """

    at: int
    alone: bool = False
    others: int = 0
    classes: int = 0
    summed: int = 1
    mark: int | None = None
    value: float | None = None
    prior: float | None = None
    floor: float | None = None
    path: str | None = None
    line: int | None = None
    module: str | None = None


class Classes(Guess):
    """Of a cross entropy. labels: seen so far. whole: no mask comes after it. even: the cost of an even guess. gain:
    how much dearer another sample's answers are. spread: standard deviation of the outputs over samples. above: share
    of rows whose exponentials add up to more than 1. outside: share of targets beyond 0 and 1. copied: share of targets
    that the model was given at the same position; None where the graph shows no way from there.
    """

    labels: int = 0
    whole: bool = False
    even: float | None = None
    gain: float | None = None
    spread: float | None = None
    above: float | None = None
    outside: float | None = None
    copied: float | None = None


class Targets(Guess):
    """Of a mean squared error. zero: the cost of predicting 0."""

    zero: float | None = None


class GradNorm(Event):
    """The norm of all gradients of an optimizer, by its number, at a step; and its learning rate."""

    kind = "grad_norm"
    has_time = True
    at: int
    optimizer: int
    value: float
    lr: float | None = None
    path: str | None = None
    line: int | None = None


class PassFailed(Event):
    """A call of a root module with gradients, or a backward pass, raised an error, and the job went on.

    phase: "forward" or "backward". times: so far, OF so many passes since the first that failed. path, line: who calls.
    last: the job has ended.
    """

    phase: str
    error: str
    message: str
    path: str
    line: int
    times: int = 0
    of: int = 0
    last: bool = False


class Rate(Event):
    """The learning rate of an optimizer, when it has changed and at the end; losses: the first and the last.

    since: the step since which it has been next to nothing, or below 0; returns: how often it has come back from there.
    scheduled: a schedule of torch sets it. further: at the end, where the number is written.
    """

    at: int
    turns: int
    optimizer: str
    number: int
    path: str
    line: int
    lr: float | None = None
    highest: float = 0.0
    maximizes: bool = False
    losses: Mapping[str, Sequence[float]] = {}
    since: int | None = None
    returns: int = 0
    scheduled: bool = False
    further: Further = ()


class Sharded(Event):
    """Gradients of an optimizer that are parts of distributed tensors, and are not read."""

    optimizer: str
    parts: int
    of: int


class Skip(Event):
    """A GradScaler held an update back.

    total: skips so far. turn: steps since the first that scaler took; older records lack it. bad: how many OF the
    gradients are not finite, nearest: the parameter of the one nearest to the loss; None where nobody looked.
    """

    total: int
    turn: int | None = None
    scale: float
    path: str
    line: int
    bad: int | None
    of: int | None
    nearest: str | None


class ClipScaled(Event):
    """A clip of torch's met gradients that are still scaled, so many times so far. norm: before the clip; None for a
    clip by value.
    """

    path: str
    line: int
    times: int = 0
    call: str
    norm: float | None
    scale: float


class ClippedByHook(Event):
    """Gradients after a backward pass that ran a hook of the user's on them.

    at: the step. line: path and line of the hook. sizes, norms: of each gradient the largest number and the norm, both
    still scaled.
    """

    at: int
    scale: float | None
    line: Where
    sizes: Sequence[float]
    norms: Sequence[float]


class EditedByHand(Event):
    """The script changed gradients between a scaled backward and the scaler.

    at: the step. total: the norm of all that were changed. lines: path and line of what changes them, once that is
    found. met: where the scaler was called. each: of three gradients the factor between before and after; the shares of
    the norm that neither the factor nor a clamp to the largest number explains; the largest number; the norm.
    """

    at: int
    scale: float
    total: float
    lines: Sequence[Where]
    met: Where
    each: Sequence[Sequence[float]]
