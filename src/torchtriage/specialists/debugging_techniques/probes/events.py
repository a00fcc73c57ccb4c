"""What the probes of this room write down.

path, line: of the user's code; "" and 0 where nothing of it was running. at: a step that is not that of the line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from torchtriage.examine.run.job.events import Batch, Classes, Event, Further, Where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NotRequired

Layer = tuple[str, float, int]  # name of its parameter, norm of that one's gradient, number of its values


# Losses


class Scores(Classes):
    """Of a likelihood that was given something else than the output of log_softmax."""


class Samples(Event):
    """Where the samples of a classifier are made, and where they are put in an order."""

    further: Further


class Probabilities(Event):
    """A loss that takes softmax or sigmoid itself was given that (word), or "probabilities" of unknown making.

    times: steps, of those that are watched. first: the first of them. loss: the function. path, line, module: of what
    makes the probabilities, else of the loss; None where neither is known.
    """

    word: str
    loss: str
    loss_line: int = 0
    times: int = 0
    first: int = 0
    path: str | None = None
    line: int | None = None
    module: str | None = None
    further: Further = ()


class Rectified(Probabilities):
    """The same of a loss of logits that was given the output of a ReLU (word), which has none below 0."""


class Broadcast(Event):
    """A prediction and a target of different shapes were compared all with all. loss: the operation of the graph.

    times: so often. first: the first step. given: the two shapes. further: where the model returns one of the two.
    """

    loss: str
    given: Sequence[Sequence[int]]
    times: int = 0
    first: int = 0
    path: str | None = None
    line: int | None = None
    module: str | None = None
    further: Further = ()


class Refused(Event):
    """Batches that were not finite and made the model's output NaN, and through which no backward pass went then.

    times: of them so far. at, batch: the first one.
    """

    times: int
    at: int
    batch: Batch


# Gradients and updates


class Births(Event):
    """Where things were made: an optimizer, by its number, with its schedule; or parameters, by name."""

    optimizer: int | None = None
    further: Further = ()
    parameters: Mapping[str, Further] = {}


class Layers(Event):
    """Norms of the gradients of an optimizer's weights, in its own order, and of its biases. path, line: of the first
    layer.
    """

    has_time = True
    at: int
    optimizer: int
    layers: Sequence[Layer]
    biases: Sequence[Layer] = ()
    path: str | None = None
    line: int | None = None


class Units(Event):
    """A layer that seemed dead: how many OF its outputs were never positive and got no gradient OVER so many watched
    steps. after: the part that follows it and cuts off what is negative, if one does.
    """

    at: int
    over: int
    layer: str
    of: int
    dead: int
    path: str | None = None
    line: int | None = None
    further: Further = ()
    after: str = ""


class UpdateSize(Event):
    """The norm of an update as a ratio to that of the weights, and its cosine with the update of the step before.

    moved: the norm of all updates together since the first, as a ratio to that of the weights. loaded: a model has got
    weights from elsewhere.
    """

    has_time = True
    at: int
    optimizer: int
    ratio: float
    cosine: float | None = None
    moved: float | None = None
    loaded: bool = False


class Stalled(Event):
    """Steps in a row, since a step and until now, that changed no parameter of an optimizer whose gradients are not 0.

    running: how many; 0 once one has changed them again. rate: the learning rate.
    """

    optimizer: str
    number: int
    rate: float
    running: int
    since: int
    path: str
    line: int
    further: Further = ()


class Updates(Event):
    """How often backward filled the gradients of an optimizer, and how often it stepped. path, line: of a backward.

    built: file:line. moved: its parameters change nevertheless. beside: an input got a gradient as well. last: the
    optimizer is gone, or the job has ended.
    """

    optimizer: str
    built: str
    backwards: int
    steps: int
    moved: bool
    path: str
    line: int
    number: int = 0
    beside: bool = False
    further: Further = ()
    last: bool = False


class EmptySteps(Event):
    """Steps of an optimizer none of whose PARAMETERS had a gradient. built: where it is made.

    passes: backward passes since the first such step, of which `leaves` reached no parameter, in PATH and LINE; root:
    the line that made what is differentiated. last: the job has ended. sound: a later step found gradients.
    """

    optimizer: str
    parameters: int
    built: Where
    path: str
    line: int
    root: int
    steps: int = 0
    passes: int = 0
    leaves: int = 0
    last: bool = False
    sound: bool = False


class Cut(Event):
    """The first loss that is differentiated has no graph. further: the lines that detached something before."""

    further: Further


class Ascent(Event):
    """Backward passes of the negative of a loss function that is never negative, OF all that were watched.

    loss: the function. first, last: its values in the first and last of them, as scaled. before: steps before the
    first. turns: how often another optimizer stepped than the one before, in so many STEPS. owned: the parameters that
    are stepped on are those of a model. path, line: of the backward.
    """

    loss: str
    path: str
    line: int
    passes: int
    of: int
    first: Sequence[float]
    last: Sequence[float]
    turns: int
    steps: int
    before: int = 0
    owned: bool = True


class Carried(Event):
    """Steps of an optimizer with gradients that an earlier one had used. path, line: of the backward that adds to them.

    running: in a row until now. total: how many OF its steps.
    """

    optimizer: str
    running: int
    path: str
    line: int
    total: int = 0
    of: int = 0
    further: Further = ()


class Zeroed(Event):
    """Steps of an optimizer that found the gradients cleared which backward had filled. path, line: of what clears.

    by_name: zero_grad does. early: how many steps. sound: another step found its gradients.
    """

    optimizer: str
    number: int
    by_name: bool
    early: int
    sound: bool
    path: str
    line: int
    further: Further = ()


class LateClip(Event):
    """Clips of gradients that a step has used, and no backward has touched since.

    call: the function. limit: of the norm or of each value. at: the step of the first. late: how many. cut: how many of
    them found gradients above the limit.
    """

    call: str
    limit: float
    at: int
    late: int
    cut: int
    path: str
    line: int
    further: Further = ()


class LateShrunk(Event):
    """Gradients that lines of the script made smaller after the step that used them, and then cleared.

    scaled: how often all by one factor, and the least and the largest of these factors. cut: how often by a limit.
    """

    scaled: int
    cut: int
    factors: Sequence[float]
    path: str
    line: int
    further: Further = ()


# Optimizers and schedules


class Homeless(TypedDict):
    """Parameters of one root module that get gradients, stand still and are in no optimizer.

    root: its class; "" for those of no module. names: the first ones. count: of all. module: the innermost that has all
    of them. later: they were made after the optimizer. instead: it was given other parameters, by mistake.
    """

    root: str
    names: Sequence[str]
    count: int
    module: str | None
    later: bool
    optimizer: str
    path: str
    line: int
    instead: NotRequired[bool]
    further: NotRequired[Further]


class Unowned(Event):
    """Parameters without an optimizer, after so many backward passes and steps of others. last: the job has ended."""

    groups: Sequence[Homeless]
    backwards: int
    steps: int
    last: bool


class Betas(Event):
    """The decay rates with which an optimizer of Adam's kind is built: of the mean of gradients, and of their squares.

    Of several groups those are told whose first exceeds the second most. path, line: where it is built.
    """

    optimizer: str
    first: float
    second: float
    path: str
    line: int


class Planned(Event):
    """A schedule when it was gone or the job ended. end: the calls that it was made for, 0 where that is not known.
    turns: of optimizers. further: the line of its first call.
    """

    schedule: str
    end: int
    calls: int
    rate: float | None
    turns: int
    path: str
    line: int
    further: Further = ()


class ScheduleLed(Event):
    """A schedule whose calls came before every step of its optimizer, the first one too."""

    schedule: str
    optimizer: str
    calls: int
    path: str
    line: int
    further: Further = ()


class BareMethod(Event):
    """A statement that was reached, and names a method without calling it ("scheduler.step")."""

    method: str
    path: str
    line: int


# Ends


class Index(Event):
    """The index out of range that ended the job.

    op: "embedding" or a loss, "indexing" of a dimension, or "assert" of a device, of which nothing more is known. low,
    high: the least and the largest that are wrong; so many (wrong) OF them are. limit: what they must be below.
    """

    op: str
    module: str | None = None
    low: int = 0
    high: int = 0
    limit: int = 0
    wrong: int = 0
    of: int = 0
    dimension: int = 0
