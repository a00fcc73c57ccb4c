"""What is kept of one rank's trace: small enough that those of thousands can be laid side by side."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

STEPS, MEETINGS, ROWS, GROUPS, LETTERS = 128, 512, 40, 32, 160
"""At most so many steps, collectives, rows of a table, groups, and letters of a name: a summary stays below 200 KB."""
FEWEST = 3
"""Whole steps below which shares are told and nothing is found in them: the first step of a recording finds no work
queued, so that it waits for what later ones find done."""
UNMARKED = -1
"""In the place of a number of steps, of a trace that is whole and marks none."""
NAMELESS = "a device"
"""One whose name the trace does not tell."""


class StepOf(Struct, frozen=True):
    """One step; without marks of steps in the trace, all of it, numbered -1. Times in nanoseconds.

    spent: by phase, which add up to length: of a device compute, communication (that nothing hides), memcpy (likewise)
    and why it idled, input, launch, sync, host, other; without one input, optimizer, compute, communication, host.
    ahead: the same of the time between the last collective before the step's first one and that one.
    """

    number: int
    begin: int
    length: int
    spent: dict[str, int]
    ahead: dict[str, int] = {}


class Met(Struct, frozen=True, array_like=True, gc=False):
    """A collective, on the clock of its rank, nanoseconds. nth: within its step and group; bytes: of its buffer."""

    operation: str
    group: str
    sequence: int
    step: int
    nth: int
    begin: int
    end: int
    bytes: int

    @property
    def key(self) -> tuple[Any, ...]:
        """By what the ranks' rows for one collective are found."""
        if self.sequence >= 0:
            return self.group, self.sequence, self.operation
        return self.group, self.step, self.nth, self.operation


class KernelRow(Struct, frozen=True):
    """All kernels of one name. short: how many last less than 10 microseconds."""

    name: str
    count: int
    nanoseconds: int
    short: int


class OperatorRow(Struct, frozen=True):
    """All calls of one operator on the host. own: without the operators that it called."""

    name: str
    count: int
    nanoseconds: int
    own: int


class ShapeRow(Struct, frozen=True):
    """All calls of one operator with the same inputs, and the time of the kernels that it launched itself.

    dims, types: as the trace tells them, JSON. kernels: their longest one's name.
    """

    name: str
    dims: str
    types: str
    count: int
    nanoseconds: int
    kernel: str


class WaitRow(Struct, frozen=True):
    """Calls in which the host waited for the device. operator: the outermost one; path, line: of the function."""

    operator: str
    call: str
    count: int
    nanoseconds: int
    path: str | None = None
    line: int | None = None
    function: str | None = None


class CopyRow(Struct, frozen=True):
    """Copies of one kind. exposed: nanoseconds in which nothing else ran on the device."""

    name: str
    count: int
    nanoseconds: int
    bytes: int
    exposed: int


class RankSummary(Struct, frozen=True):
    """One rank's trace. base: nanoseconds since 1970 that its times count from. total: of all steps, by phase.

    communicating: nanoseconds in which a collective was under way on the device, hidden or not.
    rank: None where the trace does not tell. device: None where no work on a device was recorded.
    unseen: the device of which the trace holds no work that is read, though it was there.
    odd: what was passed over, with how many; broken: the byte at which reading ended, and why. whole: how many steps
    are known to be whole, or UNMARKED.
    """

    path: str
    rank: int | None
    world: int
    host: str | None
    device: str | None
    base: int
    events: int
    bytes: int
    count: int
    total: dict[str, int]
    length: int
    steps: tuple[StepOf, ...] = ()
    met: tuple[Met, ...] = ()
    groups: dict[str, str] = {}
    kernels: tuple[KernelRow, ...] = ()
    kernel_count: int = 0
    kernel_time: int = 0
    short: int = 0
    communicating: int = 0
    operators: tuple[OperatorRow, ...] = ()
    shapes: tuple[ShapeRow, ...] = ()
    waits: tuple[WaitRow, ...] = ()
    copies: tuple[CopyRow, ...] = ()
    unseen: str | None = None
    odd: dict[str, int] = {}
    broken: tuple[int, str] | None = None
    whole: int = UNMARKED

    @property
    def on_device(self) -> bool:
        return self.device is not None

    def rows(self, *phases: str) -> list[int]:
        """For each step what it spent in PHASES together, nanoseconds."""
        return [sum(step.spent.get(phase, 0) for phase in phases) for step in self.steps]

    def share(self, *phases: str) -> tuple[float, tuple[float, float]]:
        """Of all steps spent in PHASES together, and the least and most of it with any one step left out."""
        parts, wholes = self.rows(*phases), [step.length for step in self.steps]
        part, whole = sum(self.total.get(phase, 0) for phase in phases), max(self.length, 1)
        value = part / whole
        left = [(part - one) / max(whole - all_, 1) for one, all_ in zip(parts, wholes, strict=True) if whole > all_]
        return value, (min([value, *left]), max([value, *left]))


class Glance(Struct, frozen=True):
    """One rank. total: nanoseconds of all steps, compute, communication, memcpy, idle, which add up to length.

    exactly: whether the trace is not written as Kineto does, so that all of it had to be decoded.
    """

    path: str
    rank: int | None
    device: str | None
    steps: int
    length: int
    total: dict[str, int]
    exactly: bool
