"""What the probes of module design write down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtriage.examine.run.job.events import Event, Further

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LearnedInEvaluation(Event):
    """An optimizer stepped again and again for a model in evaluation mode, or for one that has a part in that mode.

    root: the model's class, or the part's path. path, line: what put it into that mode, "" and 0 if nothing did. steps:
    in evaluation mode. running: how many of them in a row until now. learned: steps in training mode. first: the first
    of the steps in evaluation mode. called, at: path and line of a pass in that mode. kinds: how many of its trainable
    parts depend on the mode and are in evaluation mode, by kind. names: of the first few of these. fresh: their
    statistics are those of new layers. mixed: how many of its parts that depend on the mode are in training mode.
    """

    root: str
    path: str
    line: int
    steps: int
    running: int
    learned: int
    first: int
    called: str
    at: int
    kinds: Mapping[str, int]
    names: Sequence[str]
    fresh: bool
    mixed: int


class EvaluatedInTraining(Event):
    """Passes without gradients of a model in training mode, which one line calls.

    fresh: passes with a batch of a loader that no such pass has had before. again: passes over the tensor of the pass
    before. phases: between how many different backward passes. trained_on: passes over what has just been learned.
    since: the step of the first. words, around: in the names and code of the calling line, and in the lines around it.
    dropped: nobody takes the result. set: path and line that put the model into training mode, if after the last
    backward pass. kinds: how many of its parts depend on the mode and are in training mode, by kind. names: of the
    first few of these. momentum: not all of their statistics are plain averages. learned: the model's steps in training
    mode. backwards: of the job.
    """

    root: str
    path: str
    line: int
    passes: int
    fresh: int
    again: int
    phases: int
    trained_on: int
    since: int
    words: Sequence[str]
    around: Sequence[str]
    dropped: bool
    set: tuple[str, int] | None = None
    kinds: Mapping[str, int]
    names: Sequence[str]
    momentum: bool
    learned: int
    backwards: int


class Dropped(Event):
    """A dropout that was not told the mode dropped values while the model around it was in evaluation mode.

    passes: in how many. last: the number of the last of them. rate: the probability. layer: it is a layer, made for the
    call. attention: it is scaled_dot_product_attention's. module: whose method calls it. words: in the names of the
    module's class and of the function. from_: path and line of the module's method, where that calls a function which
    drops.
    """

    path: str
    line: int
    passes: int
    last: int | None = None
    rate: float
    layer: bool
    attention: bool = False
    module: str | None
    words: Sequence[str]
    from_: tuple[str, int] | None = None


class Unregistered(Event):
    """Tensors outside of a module's registers get gradients, and no optimizer has them.

    what: "modules" or "tensor". filled: after how many backward passes they had gradients. size: numbers in all.
    module: the attribute's path in the model. container: its name, after that of the owner's class.
    """

    what: str
    filled: int
    tensors: int
    size: int
    path: str
    line: int
    module: str
    container: str


class NotKept(Event):
    """A forward pass reads a plain tensor of its module that no constructor would make again.

    how: "fitted" to data, or "drawn" at random. name: of the attribute, after that of its class. size: numbers.
    module: its path, "" for a root.
    """

    how: str
    name: str
    size: int
    module: str
    path: str
    line: int


class Repeated(Event):
    """A container of the model holds one layer in several places.

    times: in how many, at most. kinds: how many layers are repeated. places, parameters: of the container, in all;
    parameters are numbers. layer: its class. again: the name of the first place with a layer that stood before.
    """

    path: str
    line: int
    times: int
    kinds: int
    places: int
    parameters: int
    module: str
    layer: str
    container: str
    again: str = ""


class Trained(Event):
    """Some parameters of a model are frozen: how many numbers are trained, OF all, and how many of these in norm
    layers. layers: how many of those there are.
    """

    model: str
    layers: int
    of: int
    trained: int
    norms: int


class FrozenAtRandom(Event):
    """The layers that a forward pass calls first never required a gradient, and hold the numbers that they had when
    they were made; what is trained comes after them.

    names, kinds: of the frozen layers, and the classes of all modules. matrices: weights of theirs of two dimensions or
    more. drawn: how many of them are distributed as an initialisation draws them. layers: how many take part in the
    pass. frozen: numbers of these, OF all of the model; measurable: those of weights that have enough for that. tables:
    they are embeddings, all that the model has. path, line: where the first one is made. further: lines that freeze.
    """

    model: str
    names: Sequence[str]
    kinds: Sequence[str]
    matrices: int
    drawn: int = 0
    layers: int = 0
    frozen: int = 0
    of: int
    steps: int = 0
    path: str
    line: int
    measurable: int = 0
    tables: bool = False
    further: Further = ()


class Unused(Event):
    """A parameter of an optimizer has had no gradient in any of its steps.

    size: numbers. ran, frozen: its module was called, and once without gradients. module: path of its module, or its
    own where it stands in a root or a list of parameters. path, line: where it is assigned, "" and 0 if that is
    unknown. partly: other parameters of its module have gradients.
    """

    optimizer: str
    steps: int
    size: int
    ran: bool
    frozen: bool
    name: str
    module: str
    path: str
    line: int
    partly: bool
