"""One answer and what it was worth: the unit that is written down as soon as it is there."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from pathlib import Path

import msgspec
from msgspec import Struct


class Arm(Enum):
    """What the agent has besides the query."""

    RED = "red"  # nothing
    PLACEBO = "placebo"  # as many characters of text about other things
    GREEN = "green"  # the skill in its context
    OFFERED = "offered"  # the skill, to be opened or not, among others
    TOOLS = "tools"  # torchtriage's MCP server


class Spent(Struct, frozen=True):
    """Tokens, and dollars where a price is known."""

    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float | None = None

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def __add__(self, other: Spent) -> Spent:
        known = [each.dollars for each in (self, other) if each.dollars is not None]
        dollars = sum(known) if known else None
        return Spent(self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out, dollars)


class Trial(Struct, frozen=True, kw_only=True):
    """One scenario in one arm, calm or pressed, once.

    score: 1 is all that was asked, below 0 is harm; None where nothing could be scored. parts: what it is the mean
    of. unscored: why points were not judged, with how many. opened: whether the skill was opened, where it could be.
    calls: the tools that were called. stopped: why the answer was cut short, or empty.
    """

    scenario: str
    family: str
    kind: str
    arm: Arm
    pressure: str | None
    epoch: int
    score: float | None
    parts: dict[str, float] = {}
    unscored: dict[str, int] = {}
    opened: bool | None = None
    calls: tuple[str, ...] = ()
    stopped: str = ""
    agent: Spent = Spent()
    judge: Spent = Spent()


class Book:
    """Trials in the file trials.jsonl of a folder: each is there as soon as it has been scored."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "trials.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(b"")

    def write(self, trial: Trial) -> None:
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(trial) + b"\n")

    def trials(self) -> tuple[Trial, ...]:
        """All of them, in an order that does not depend on which was finished first."""
        return ordered(read(self._path))


def read(path: Path) -> Iterable[Trial]:
    return (msgspec.json.decode(line, type=Trial) for line in path.read_bytes().splitlines() if line)


def ordered(trials: Iterable[Trial]) -> tuple[Trial, ...]:
    return tuple(sorted(trials, key=lambda one: (one.scenario, one.arm.value, one.pressure or "", one.epoch)))
