"""What the job writes about an experiment: where it waits, and what each branch of it has shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtriage.examine.run.job.events import Event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Wish(Event):
    """What the conductor wants of the job that waits: a branch, or that it goes on; or of a whole job, that it is this.

    look: instead of steps, what the answers of the model depend on. changes: interventions with their values. steps: of
    the trial under them; skipped: before them, in which nothing is updated, so that it sees other batches. seed: of
    all generators, when it begins; None leaves them as they are. seconds: that it may take.
    """

    number: int = 0
    goes_on: bool = False
    look: str = ""
    changes: Mapping[str, float] = {}
    steps: int = 0
    skipped: int = 0
    seed: int | None = None
    seconds: float = 0.0


class Waiting(Event):
    """The job stands before its first forward pass in training mode, and waits for wishes.

    why: it cannot be branched, in words that follow on "the job"; then it goes on at once.
    """

    why: str = ""


class Branched(Event):
    """What became of the branch, or of the whole job, that was the wish of that NUMBER.

    losses: of each step, one number for each backward pass, before any loss scaling; before: the same of steps in which
    nothing was updated. rates: the highest learning rate of each step, before any change of ours. seconds: of each
    step. peak: bytes in tensors of the device, at most; None without one. optimizers: how many have stepped. ended:
    "steps" where it has done what it was asked for, "job" where the job came to its end, "error", "late" or "not
    applied". why: what it raised, or why a change could not be made.
    """

    number: int = 0
    before: Sequence[Sequence[float]] = ()
    losses: Sequence[Sequence[float]] = ()
    rates: Sequence[float] = ()
    seconds: Sequence[float] = ()
    peak: int | None = None
    optimizers: int = 0
    ended: str = "steps"
    why: str = ""


class Influence(Event):
    """What the outputs of a root module depend on, by its own answers in evaluation mode.

    number: of the wish. module: the class. why: it could not be asked. inputs: tensors that it was given, as (name,
    shape). rows: samples that were compared. varied: of each input, whether its samples differ at all; distinct: of how
    many kinds they are. constant: none differs, though the loader delivered something that does. own: of each input,
    whether anything that the model gives changes with it, at its own weights or at others; None of one that is the same
    for all. parameters: numbers that can be learned.

    others: the most by which an answer changes with the numbers of other samples, as a share of the spread of all
    answers; order: the same when only their order is another; along: what takes samples for something else, a
    layer, or a softmax in a line of that path;
    no_samples: why none of that can be said. later: the same by which an answer that the loss asks for changes with
    what comes later in its sequence. shifted: the share of positions whose target is the id of the next one; None where
    that is not known. objective: the function of torch that is all of the loss, where right answers cost nothing.
    """

    number: int = 0
    module: str = ""
    inputs: Sequence[tuple[str, Sequence[int]]] = ()
    rows: int = 0
    varied: Sequence[bool] = ()
    distinct: int = 0
    constant: bool = False
    own: Sequence[bool | None] = ()
    parameters: int = 0
    others: float | None = None
    order: float | None = None
    along: str = ""
    path: str = ""
    line: int = 0
    no_samples: str = ""
    later: float | None = None
    shifted: float | None = None
    objective: str = ""
    why: str = ""
