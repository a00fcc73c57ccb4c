"""What three legs have shown, as nouns that detectors look at. No lore: what a part is called stands in the room."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.detector import view


@dataclass(frozen=True)
class Row:
    """One entry that is not the same: BEFORE in the job that went on, AFTER in the one that was resumed.

    Plain values as they are, None where there is none; of tensors distance and norm (L2), and how many of their
    numbers differ. rounded: the precision through which BEFORE becomes AFTER.
    """

    key: str
    before: Any = None
    after: Any = None
    gone: bool = False
    new: bool = False
    distance: float | None = None
    norm: float | None = None
    differing: int = 0
    numbers: int = 0
    rounded: str = ""
    anew: bool = False  # AFTER is what a job has that begins


@dataclass(frozen=True)
class Part:
    """One holder of state, such as an optimizer: how many entries it has, and those that differ.

    moves: it changes while the job trains.
    """

    kind: str
    holder: str
    entries: int
    rows: tuple[Row, ...]
    moves: bool

    @property
    def relative(self) -> float | None:
        """The distance over the norm, of all its tensors that differ."""
        norm = sum(row.norm**2 for row in self.rows if row.norm is not None) ** 0.5
        distance = sum(row.distance**2 for row in self.rows if row.distance is not None) ** 0.5
        return distance / norm if norm else None


@dataclass(frozen=True)
class Unit:
    """One backward pass as it was recorded, by what it is: weights, buffers, batch, rows, indices, rng, loss, lr."""

    number: int
    turn: int
    told: dict[str, Any]


@dataclass(frozen=True)
class Course:
    """How the resumed job went on. units: pairs that were compared; apart: by what it is the first unit that differs.

    missing: units that it did less than the other (negative: more), None where the legs did not run to their end.
    relative: distance of the final weights over their norm.
    """

    units: int
    apart: dict[str, int] = field(default_factory=dict)
    missing: int | None = None
    relative: float | None = None
    losses: tuple[float, float] | None = None  # at the first unit whose loss differs


@dataclass(frozen=True)
class Repeat:
    """Whether the job repeats itself: units that were compared, the first that differs, and its two losses."""

    units: int
    apart: int | None = None
    what: tuple[str, ...] = ()
    losses: tuple[float | None, float | None] = (None, None)


@dataclass(frozen=True)
class Resumed:
    """One rank of a resumed job beside the one that went on.

    unit, turn: with which backward pass, after how many turns of the optimizer, it resumed, from 0. parts: what
    differs then. before, after: units from there on, `stood` those up to the stop. files: what was read, and after
    which turn it was written. passes: marks of the generators as passes over loaders began, and as files were written.
    alone: no other rank trains with it.
    """

    rank: int
    unit: int
    turn: int
    parts: tuple[Part, ...]
    entries: int
    course: Course
    repeat: Repeat
    before: tuple[Unit, ...]
    after: tuple[Unit, ...]
    stood: tuple[Unit, ...]
    files: dict[str, int] = field(default_factory=dict)
    began: dict[str, str] = field(default_factory=dict)
    begins: dict[str, tuple[str, ...]] = field(default_factory=dict)
    saved: dict[str, tuple[str, ...]] = field(default_factory=dict)
    alone: bool = True


@dataclass(frozen=True)
class Trial:
    """All ranks of a resumed job, and what could not be compared."""

    ranks: tuple[Resumed, ...]
    inconclusive: tuple[Inconclusive, ...] = ()


@view(Resumed, of=Trial)
def _by_rank(trial: Trial) -> Iterable[Resumed]:
    return trial.ranks
