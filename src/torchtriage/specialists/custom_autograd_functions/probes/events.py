"""What the probes of autograd functions write down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchtriage.examine.run.job.events import Event, Further

if TYPE_CHECKING:
    from collections.abc import Sequence


class OnCtx(Event):
    """At the end: forward has left an input that needs a gradient, or an output, on an attribute of ctx.

    function: the class. what: "input" or "output". calls: in how many. bytes: of the tensor in the first of them.
    looked: outputs that were looked for after their step, of which so many stayed. taken: backward sets or deletes it.
    path, line: of the line that sets it.
    """

    function: str
    attribute: str
    what: str
    calls: int
    bytes: int
    stayed: int
    looked: int
    taken: bool
    path: str | None
    line: int


class ChangedInput(Event):
    """At the end: forward has changed an input that needs a gradient in place, and has not marked it dirty.

    changed: in how many of the calls that were looked at. line: that changes it.
    """

    function: str
    input: str
    changed: int
    calls: int
    path: str | None
    line: int


class Flat(Event):
    """A loss that is reached from some parameters only through operations whose gradient is zero everywhere.

    ops: which. parameters: how many of those that an optimizer is to move, and that found no gradient but zero in so
    many STEPS; of: all that the loss is reached from. names: of the first. path, line: of the backward; root: the line
    that made the loss. further: the lines that call the operations.
    """

    ops: Sequence[str]
    parameters: int
    of: int
    names: Sequence[str]
    path: str
    line: int
    root: int = 0
    steps: int = 0
    further: Further = ()
