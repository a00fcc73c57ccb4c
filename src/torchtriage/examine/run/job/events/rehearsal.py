"""What is written of a job that runs on a simulated device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .event import Event

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Rehearsal(Event):
    """The job runs on a simulated device, whose times are none. memory: bytes of each of so many DEVICES."""

    card: str = ""
    memory: int = 0
    devices: int = 1


class RehearsedSteps(Event):
    """What the device did in so many STEPS, in all of them together; the last of such events holds.

    nanoseconds: of the device, the least that its data sheet allows; 0 where none is known. waits: path, line, call,
    number of waits of the host, and in how many steps. transfers: path, line, kind, whether from or to pinned memory,
    whether it asked not to block, number and bytes of copies, and in how many steps. A line of 0 is one of torch's own
    threads, as in a backward pass.
    """

    steps: int = 0
    kernels: int = 0
    nanoseconds: int = 0
    waits: Sequence[Sequence[Any]] = ()
    transfers: Sequence[Sequence[Any]] = ()


class RehearsedPeak(Event):
    """The most bytes in tensors of a DEVICE, in step AT, of each holder, and the line that asked for the last of them;
    the last such event of a device holds.
    """

    device: int = 0
    bytes: int = 0
    reserved: int = 0
    at: int = 0
    path: str = ""
    line: int = 0
    holders: Mapping[str, int] = {}


class NotSimulated(Event):
    """The job asked at a line for what the simulated device does not have. ends: it cannot go on without."""

    name: str = ""
    why: str = ""
    path: str = ""
    line: int = 0
    ends: bool = False
