"""torchtriage repro: a job is run twice under fingerprints, looked at more closely where it parts, and held still."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from torchtriage.core.evidence import Inconclusive
from torchtriage.examine.detector import view
from torchtriage.examine.trial.leg.execute import Ended
from torchtriage.examine.trial.repeat import explain, pinpoint, record
from torchtriage.examine.trial.repeat.compare import Difference, compared, first
from torchtriage.examine.trial.repeat.pairs import Runner
from torchtriage.examine.trial.repeat.pinpoint import Origin
from torchtriage.examine.trial.repeat.record import Told

_EPOCH = 100  # turns after the difference, in which samples are looked for that have come in another order
_BEYOND = 3  # turns after the difference, that a leg must be equal in as well


@dataclass(frozen=True)
class Tried:
    """One explanation. equal: with it held still the legs were equal. seconds: of a step without and with it."""

    what: str
    equal: bool
    steps: int
    seconds: tuple[float | None, float | None]


@dataclass(frozen=True)
class Repeat:
    """What two runs of one command have shown, and the further legs that it took to explain a difference.

    seen: the first difference, as the first pair shows it. place: as the second look tells it, where that has found the
    same one. origin: its operation.
    shifting: the second pair parted elsewhere, or not at all. reordered: the share of samples that came in both, in
    another order. steps: compared, of the rank of which the fewest were. counts: steps that each leg has ended.
    """

    one: Told
    other: Told
    ends: tuple[Ended, Ended]
    steps: int
    seen: Difference | None = None
    place: Difference | None = None
    origin: Origin | None = None
    shifting: bool = False
    reordered: float | None = None
    tried: tuple[Tried, ...] = ()
    taken: Mapping[type, Any] = field(default_factory=dict)

    @property
    def explained(self) -> Tried | None:
        """The explanation that held: with nothing but that held still, the legs were equal."""
        return next((each for each in self.tried if each.equal), None)

    @property
    def counts(self) -> tuple[int, int]:
        """Steps that the legs have ended, of the rank that has ended the fewest."""
        return _count(self.one), _count(self.other)

    @property
    def raced(self) -> bool:
        """Whether several threads train: which one was watched is then up to chance, and nothing was compared."""
        return self.one.threads or self.other.threads

    @property
    def lengths(self) -> tuple[int, int] | None:
        """Steps of two legs that trained alike as far as both went and came to their ends, where these differ."""
        ended = all(each.ended and not each.full for each in (*self.one.ranks, *self.other.ranks))
        whole = not any(each.stopped or each.late or each.code for each in self.ends)
        one, other = self.counts
        return (one, other) if not self.raced and self.place is None and ended and whole and one != other else None

    @property
    def unseen(self) -> tuple[Inconclusive, ...]:
        """What stood in the way of seeing more."""
        return tuple(_unseen(self))


@view(Repeat, of=Repeat)
def _whole(repeat: Repeat) -> list[Repeat]:
    return [repeat]


def repeat(runner: Runner) -> Repeat:
    """Runs the command of RUNNER twice, and further times where the two differ. Raises TriageError as a leg does."""
    runner.tell("repro: leg 1 of 2")
    one, ended = runner.leg("first", runner.steps, {})
    turns = runner.steps
    if not ended.late and not _count(one):
        return Repeat(one, Told(()), (ended, ended), 0)
    if ended.late:
        turns = record.turns(runner.folder / "records" / "first")
    runner.tell(f"repro: leg 2 of 2, {_count(one):,} steps to compare")
    other, again = runner.leg("second", turns, {})
    seen = None if one.threads or other.threads else first(one, other)
    found = Repeat(one, other, (ended, again), compared(one, other), seen, seen)
    if seen is None:
        return found
    found = _looked(runner, found, seen)
    return _explained(runner, found, found.place or seen)


def _looked(runner: Runner, found: Repeat, place: Difference) -> Repeat:
    """A second pair, with every operation of the guilty step written down."""
    runner.tell(f"repro: the runs part at step {place.step} ({place.phase}); two legs for a closer look")
    begin, end = place.turns
    beyond = _EPOCH if place.phase == "data" else 1
    begin = max(0, begin - found.one.by_rank[place.rank].loose)
    wanted = {"ops": [begin, end], "rows": place.phase == "data", "held": True}
    one, other = runner.pair("closer", end + beyond, wanted)
    again = first(one, other)
    if again is None or again.turns != place.turns or again.rank != place.rank:
        return replace(found, shifting=True)
    origin = pinpoint.origin(one.by_rank[again.rank], other.by_rank[again.rank], place.turns)
    return replace(found, place=_placed(again, place, origin), origin=origin, reordered=explain.reordered(one, other))


def _placed(again: Difference, before: Difference, origin: Origin | None) -> Difference:
    """The difference, at the module and in the phase of the operation from which it spreads."""
    place = replace(again, states=before.states, differing=before.differing)
    if origin is None or place.phase == "setup":
        return place
    if origin.part != "forward":
        return replace(place, phase=origin.part, module=origin.module or place.module)
    if origin.early and origin.module is None and place.item.kind != "held":
        return replace(place, phase="data", module=None)
    if place.phase in {"forward", "backward"}:
        return replace(place, phase="forward", module=origin.module)
    return place


def _explained(runner: Runner, found: Repeat, place: Difference) -> Repeat:
    """Legs with one suspect after the other held still, until two of them are equal."""
    tried: list[Tried] = []
    for what in explain.explanations(place, found.origin, found.one, found.other):
        runner.tell(f"repro: two legs with {what} held still")
        tried.append(_tried(runner, found.one, place, what, (what,)))
        if tried[-1].equal:
            break
    if not tried or not tried[-1].equal:
        tried.append(_tried(runner, found.one, place, "together", explain.TOGETHER))
    return replace(found, tried=tuple(tried))


def _tried(runner: Runner, before: Told, place: Difference, what: str, fixed: tuple[str, ...]) -> Tried:
    one, other = runner.pair(what, place.turns[1] + 1 + _BEYOND, {}, fixed)
    steps = compared(one, other)
    equal = steps >= place.step and first(one, other) is None
    return Tried(what, equal, steps, (_seconds(before), _seconds(one)))


def _seconds(told: Told) -> float | None:
    return max((each.seconds for each in told.ranks if each.seconds is not None), default=None)


def _count(told: Told) -> int:
    return min((each.count for each in told.ranks), default=0)


def _unseen(found: Repeat) -> list[Inconclusive]:
    told = []
    for leg, (one, ended) in enumerate(zip((found.one, found.other), found.ends, strict=True), 1):
        told += [
            _not_seen(f"leg {leg}: the fingerprints ended early: {why}", "Report it; it is torchtriage's fault.")
            for why in one.lost
        ]
        if any(each.full for each in one.ranks):
            told.append(
                _not_seen(f"leg {leg} wrote 256 MB of fingerprints; later steps are not in them", "Use --steps.")
            )
        if ended.late:
            told.append(
                _not_seen(f"leg {leg} was ended by --timeout after {_count(one):,} steps", "A longer --timeout.")
            )
        elif ended.code and not ended.stopped and found.steps:
            last = f": {ended.said[-1][:200]}" if ended.said else ""
            why = f"leg {leg} ended with {ended.code} after {_count(one):,} steps{last}"
            told.append(_not_seen(why, "What came before that was compared; mend it to have the rest compared, too."))
    return [*told, *_unexplained(found)]


def _unexplained(found: Repeat) -> list[Inconclusive]:
    """The place is known, and the reason is not."""
    if found.place is None or found.explained is not None:
        return []
    held = ", ".join(each.what for each in found.tried)
    often = " (what differs comes and goes: a second pair parted elsewhere, or not at all)" if found.shifting else ""
    why = (
        f"what the difference comes from is not told: legs still differed with each of these held still: {held}{often}"
    )
    return [_not_seen(why, "Look at the place that is named; take away what it calls, piece by piece, and try again.")]


def _not_seen(why: str, unblock: str) -> Inconclusive:
    return Inconclusive("trial/run-not-reproducible", why, unblock)
