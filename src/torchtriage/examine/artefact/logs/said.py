"""What logs say, as detectors see it: errors, ends, the series of the loss, and what NCCL told of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torchtriage.core.end import End
from torchtriage.core.evidence import Inconclusive, Place
from torchtriage.core.query import Decoded
from torchtriage.examine.detector import CannotSee, Sighting, view

ENDED = 4
"""The tier from which on something was ended by the launcher, or is noise."""
SHOWN = 300
"""Characters of a message that are shown."""


@dataclass(frozen=True)
class Frame:
    """Where in the user's code an error was raised: the innermost line that is in no installed package."""

    path: str
    line: int
    function: str
    code: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Said:
    """One thing that went wrong, in the words of a log.

    kind: "raised" a Python error, "warned" a warning, "native" a message of C++ or of the interpreter's end, "ended"
    what a kernel, scheduler or launcher says of the end of a process. tier: 0 may be the cause; what is higher follows
    from what is lower: 1 a process that was ended from outside, 2 the end of waiting, 3 a lost peer, 4 the launcher's
    own end, 5 noise. rank: None where the log does not tell. at: where the job itself stood, by its own record, which
    is then no place in a log. met: the operands of the raising line, by the same record.
    """

    path: str
    line: int
    rank: int | None
    kind: str
    text: str
    decoded: tuple[Decoded, ...] = ()
    frame: Frame | None = None
    tier: int = 0
    pid: int | None = None
    at: Place | None = None
    met: str = ""

    @property
    def place(self) -> Place:
        if self.at is not None:
            return self.at
        return Place(self.path, self.line, rank=self.rank, anchor=self.frame.code or None if self.frame else None)

    @property
    def headline(self) -> str:
        """Its first line."""
        return self.text.strip().split("\n", 1)[0][:SHOWN]


@dataclass(frozen=True)
class Exit:
    """How the launcher says that a rank ended. code: below 0 the signal. is_root: it was observed first."""

    path: str
    line: int
    rank: int
    code: int
    pid: int | None
    is_root: bool
    host: str = ""


@dataclass(frozen=True)
class Lost:
    """A series that ceased to be finite and stayed so. value: nan, inf or -inf.

    finite: how many finite values came before; bad: how many that are not finite. step: as the line says it.
    """

    path: str
    line: int
    rank: int | None
    name: str
    value: float
    finite: int
    bad: int
    step: int | None


@dataclass(frozen=True)
class Logs:
    """The logs of one job. said: in the order of the files and lines. ranks: those that a line or file names.

    lines: how many there were. cause: what the end of the job began with, None where nothing says that it ended badly.
    end: the same as every report tells it; None also where the log goes on after the error. is_usable: whether any line
    says something of a training or of how it ended: silence about any other text means nothing.
    """

    paths: tuple[str, ...]
    lines: int = 0
    said: tuple[Said, ...] = ()
    exits: tuple[Exit, ...] = ()
    lost: tuple[Lost, ...] = ()
    losses: tuple[tuple[int | None, float], ...] = ()
    nccl: dict[str, Any] = field(default_factory=dict)
    ranks: tuple[int, ...] = ()
    cause: Said | None = None
    inconclusive: tuple[Inconclusive, ...] = ()
    end: End | None = None
    is_usable: bool = True

    @property
    def causes(self) -> Iterator[Said]:
        """What may have begun the end, the one that did first; then warnings. What follows from it is left out."""
        own = [each for each in self.said if each.tier == 0 and each.kind != "warned"]
        if self.cause is not None and (self.cause not in own or own[0] is not self.cause):
            own = [self.cause, *(each for each in own if each is not self.cause)]
        yield from own
        yield from (each for each in self.said if each.kind == "warned")

    @property
    def followed(self) -> int:
        """How many messages only follow from the cause."""
        return sum(1 <= each.tier < 5 and each is not self.cause for each in self.said)


@view(Logs, of=Logs)
def _whole(logs: Logs) -> Iterable[Logs]:
    if not logs.lines:
        why = next(iter(logs.inconclusive), None)
        raise CannotSee(why.why if why else "no line could be read", why.unblock if why else "Name another log.")
    if not logs.is_usable:
        where = ", ".join(logs.paths[:3])
        raise CannotSee(
            f"{where}: no error, no warning, no loss and no word of a launcher in {logs.lines:,} "
            f"{'line' if logs.lines == 1 else 'lines'}",
            "Name the file that holds the training's own output, or its traceback.",
        )
    return [logs]


def told(
    logs: Logs, signatures: Sequence[str], fits: Callable[[Decoded, Said], bool] = lambda _, __: True
) -> Iterator[Sighting]:
    """One sighting for each message of LOGS that is one of SIGNATURES and may be the cause of the end, with its ranks.

    Of several in one error, the first of SIGNATURES that FITS speaks. The same words of several ranks are one
    sighting, at the place of the first.
    """
    seen: dict[tuple[str, str], list[Said]] = {}
    facts: dict[tuple[str, str], str] = {}
    for said in logs.causes:
        near = [each for name in signatures for each in said.decoded if each.signature == name and fits(each, said)]
        if near and said.tier < ENDED:
            key = (near[0].text, str(said.frame))
            seen.setdefault(key, []).append(said)
            facts.setdefault(key, near[0].says or near[0].text)
    for key, group in seen.items():
        yield Sighting(group[0].place, fact(logs, group, facts[key]))


def fact(logs: Logs, group: Sequence[Said], says: str) -> str:
    """SAYS in one sentence with what the log said, where in the code, on which ranks, and what followed from it."""
    first = group[0]
    where = f", raised at {first.frame} in {first.frame.function}" if first.frame else ""
    where += f": {first.met}" if first.met else ""
    ranks = sorted({each.rank for each in group if each.rank is not None})
    on = f" on ranks {', '.join(map(str, ranks[:8]))}{' and more' if len(ranks) > 8 else ''}" if len(ranks) > 1 else ""
    times = f", {len(group)} times" if len(group) > 1 and not on else ""
    others = (
        f"; what else the log tells of ({logs.followed}) follows from it"
        if first is logs.cause and logs.followed
        else ""
    )
    return f"{says.rstrip('.')}{where}{on}{times}{others}"
