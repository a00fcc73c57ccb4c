"""How processes end, and what they say of themselves in the list of processes.

attach/sitecustomize.py writes most of that list as text, since it must import nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .event import Event

if TYPE_CHECKING:
    from collections.abc import Sequence


class Error(Event):
    """An error that ended the process. operands: names of the raising line and what they are, by shape and dtype."""

    pid: int | None = None
    rank: int | None = None
    time: int = 0
    error: str = "Error"
    message: str = ""
    path: str | None = None
    line: int | None = None
    traceback: str | None = None
    operands: Sequence[tuple[str, str]] = ()
    module: str | None = None
    module_is: str | None = None
    function: str | None = None
    not_finite: Sequence[tuple[str, str]] = ()


class Handled(Error):
    """An error that the job caught and printed."""


class Note(Event):
    """What a process of the job says of itself. why: what went wrong."""

    pid: int | None = None
    rank: int | None = None
    why: str = ""


class Attached(Note):
    """A Python process of the job began."""


class Torch(Note):
    """It imported torch."""


class ProbesFailed(Note):
    """The probes could not be put into it."""


class TorchNotFollowed(Note):
    """It imports torch in an unusual way."""


class Exit(Note):
    """The program left with a code, by a line of its own. message: what it printed."""

    code: int
    message: str = ""
    path: str | None = None
    line: int | None = None
    not_finite: Sequence[tuple[str, str]] = ()


class Launcher(Note):
    """A launcher of the job is there. index: among those of one job."""

    launcher: str | None = None
    index: int | None = None
    host: str | None = None


class Ended(Note):
    """How a launcher saw the job end. signal: "SIGKILL (9)". python: what ran the script, where it is not our `own`.
    oom: what the kernel killed, and oom_counted: whether it counts.
    """

    code: int | None = None
    signal: str | None = None
    launcher: str | None = None
    hang: bool = False
    python: str | None = None
    own: str | None = None
    oom: Any = None
    oom_counted: bool = False


class Watches(Note):
    """It notices from now on when it stands still, and answers who asks where."""


class Stands(Note):
    """It has come to stand: its own file tells where."""

    kind = "hang"


class Moves(Note):
    """It moves again."""

    kind = "moved"


class Looked(Note):
    """It was asked where it stands, and has told."""


class Left(Note):
    """It does not watch any more."""
