"""What was seen, where, and how strongly. Evidence is never a user's opinion."""

from __future__ import annotations

import re
from typing import TypeAlias

from msgspec import Struct

from torchtriage.core.some import Some

_TEST = re.compile(r"(^|/)(test_[^/]*|[^/]*_test|conftest)\.py$")


def is_test(path: str) -> bool:
    """Whether the file PATH holds tests, by its name: what they do with models is no training."""
    return _TEST.search(path) is not None


class Place(Struct, frozen=True):
    """A point that a reader can go and look at; whatever does not apply is None.

    path, line, column, end_line: a piece of source, lines and columns from 1; cell: of a notebook, from 1.
    offset: bytes from the start of an artefact. rank, step: of a run, from 0.
    module: a path of names below the root module ("blocks.2"); container: the variable that holds something.
    anchor: what still identifies the place when lines shift (for source: the line's own text).
    """

    path: str | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    cell: int | None = None
    offset: int | None = None
    rank: int | None = None
    step: int | None = None
    module: str | None = None
    container: str | None = None
    anchor: str | None = None

    def __str__(self) -> str:
        spot = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        words = [f"cell {self.cell}"] if self.cell is not None else []
        words += [f"byte {self.offset}"] if self.offset is not None else []
        words += [f"rank {self.rank}"] if self.rank is not None else []
        words += [f"step {self.step}"] if self.step is not None else []
        words += [f"module {self.module}"] if self.module is not None else []
        words += [f"held by {self.container}"] if self.container is not None else []
        return ", ".join([spot, *words] if spot else words) or "the whole job"


class Edit(Struct, frozen=True):
    """A change of text: bytes start..end of path are replaced by text; it belongs to the remedy of that id."""

    remedy: str
    path: str
    start: int
    end: int
    text: str

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"{self.path}: an edit from {self.start} to {self.end} runs backwards")


class Evidence(Struct, frozen=True, tag_field="kind", tag="evidence"):
    """One fact found by one detector.

    fact: the sentence a reader sees. value, unit: its measure. spread: the low and high end of the interval
    within which the value lies (95 % where it was estimated); a sign must hold at its near end.
    """

    detector: str
    place: Place
    fact: str
    value: float | None = None
    unit: str | None = None
    spread: tuple[float, float] | None = None
    edits: tuple[Edit, ...] = ()

    def __post_init__(self) -> None:
        if not self.detector or not self.fact:
            raise ValueError(f"evidence of {self.detector!r} saying {self.fact!r}: both are needed")
        if self.spread is not None and (self.value is None or not self.spread[0] <= self.value <= self.spread[1]):
            raise ValueError(f"{self.detector}: value {self.value} lies outside its spread {self.spread}")


class Observed(Struct, frozen=True, tag_field="kind", tag="observed"):
    """The detector could look. What it saw may be nothing: whether that is healthy is for diagnose."""

    detector: str
    evidence: tuple[Evidence, ...] = ()


class Inconclusive(Struct, frozen=True, tag_field="kind", tag="inconclusive"):
    """The detector could not look, or could not tell: its silence means nothing.

    why: what was missing. unblock: what would let it see.
    """

    detector: str
    why: str
    unblock: str

    def __post_init__(self) -> None:
        if not self.why or not self.unblock:
            raise ValueError(f"{self.detector}: inconclusive needs a reason and what would unblock it")


Outcome: TypeAlias = Observed | Inconclusive


class Verdict(Struct, frozen=True, tag_field="kind", tag="verdict-given"):
    """Where the time or memory goes. It may open steps; it is never a finding, and a healthy job may have one."""

    verdict: str
    title: str
    evidence: Some[Evidence]

    def __post_init__(self) -> None:
        if not self.evidence:
            raise ValueError(f"{self.verdict}: a verdict needs evidence")
