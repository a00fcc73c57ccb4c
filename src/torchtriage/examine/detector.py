"""How a detector is written: one decorated function whose annotation says what it looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

from msgspec import Struct

from torchtriage.core.evidence import Edit, Evidence, Inconclusive, Observed, Outcome, Place

_NO_TIMES = (
    "the device is simulated, and the time that its steps take on this machine says nothing of a real one",
    "Run the job on the device itself.",
)


class Sighting(Struct, frozen=True):
    """One thing a detector saw. Without a fact of its own it says what the detector's docstring says."""

    place: Place
    fact: str = ""
    value: float | None = None
    unit: str | None = None
    spread: tuple[float, float] | None = None
    edits: tuple[Edit, ...] = ()


class CannotSee(Exception):
    """Raised by a detector that lacks what it needs: its outcome is Inconclusive(why, unblock)."""

    def __init__(self, why: str, unblock: str) -> None:
        super().__init__(why)
        self.why, self.unblock = why, unblock


Look = Callable[[Any], Iterator[Sighting]]
Parts = Callable[[Any], Iterable[Any]]
_VIEWS: dict[type, tuple[type, Parts]] = {}


def view(shown: type, of: type) -> Callable[[Parts], Parts]:
    """Declares that detectors may look at SHOWN, the parts into which the decorated function takes an OF apart.

    A subject that has a dictionary `taken` keeps its parts there, since one view is often made from another.
    """

    def declare(parts: Parts) -> Parts:
        @wraps(parts)
        def once(subject: Any) -> tuple[Any, ...]:
            taken: dict[type, tuple[Any, ...]] = getattr(subject, "taken", {})
            if shown not in taken:
                taken[shown] = tuple(parts(subject))
            return taken[shown]

        _VIEWS[shown] = (of, once)
        return once

    return declare


class Detector(Struct, frozen=True):
    """name: LOOKER/SLUG, where the looker is source, run, log or the artefact's kind. timed: what it judges are times,
    which a job on a simulated device has none of.
    """

    name: str
    looks_at: type
    look: Look
    says: str
    timed: bool = False


def detector(name: str, *, timed: bool = False) -> Callable[[Look], Detector]:
    """Makes a function a detector; raises TypeError when its annotation or docstring does not tell what it does."""

    def make(look: Look) -> Detector:
        said = [hint for word, hint in look.__annotations__.items() if word != "return"]
        # looked up, not by typing.get_type_hints: a hundred evaluations of Iterator[Sighting] cost a cold start 5 ms
        looks_at = getattr(look, "__globals__", {}).get(said[0], said[0]) if len(said) == 1 else None
        if not isinstance(looks_at, type) or looks_at not in _VIEWS:
            raise TypeError(f"{name}: a detector looks at exactly one of {sorted(v.__name__ for v in _VIEWS)}")
        if not look.__doc__:
            raise TypeError(f"{name}: a detector says in its docstring what it sees")
        return Detector(name, looks_at, look, look.__doc__.strip().splitlines()[0], timed)

    return make


def perform(detectors: Iterable[Detector], subject: Any) -> Iterator[Outcome]:
    """One outcome for every detector that fits SUBJECT: observed or inconclusive, never silence.

    A detector that raises is inconclusive, with the error in its own words: one bad detector must not
    take the others' findings away. A subject that has a function `folded` makes what a detector says of very many
    parts into fewer sightings.
    """
    shown = _Views(subject)
    fold: Callable[[list[Sighting]], list[Sighting]] = getattr(subject, "folded", list)
    for each in detectors:
        if not isinstance(subject, _VIEWS[each.looks_at][0]):
            continue
        if each.timed and getattr(subject, "is_simulated", False):
            yield Inconclusive(each.name, *_NO_TIMES)
            continue
        try:
            seen = fold([sighting for part in shown.of(each.looks_at) for sighting in each.look(part)])
        except CannotSee as reason:
            yield Inconclusive(each.name, reason.why, reason.unblock)
        except Exception as error:  # noqa: BLE001 - reported, and the tests make it fail
            yield Inconclusive(each.name, f"the detector failed: {error!r}", "Report it; it is torchtriage's fault.")
        else:
            yield Observed(each.name, tuple(_evidence(each, sighting) for sighting in seen))


class _Views:
    """The parts of one subject, each kind taken apart once; what cannot be is not tried for each detector again."""

    def __init__(self, subject: Any) -> None:
        self._subject = subject
        self._parts: dict[type, tuple[Any, ...] | Exception] = {}

    def of(self, kind: type) -> tuple[Any, ...]:
        if kind not in self._parts:
            try:
                self._parts[kind] = tuple(_VIEWS[kind][1](self._subject))
            except Exception as error:  # noqa: BLE001 - raised again below
                self._parts[kind] = error
        found = self._parts[kind]
        if isinstance(found, Exception):
            raise found
        return found


def _evidence(by: Detector, seen: Sighting) -> Evidence:
    return Evidence(by.name, seen.place, seen.fact or by.says, seen.value, seen.unit, seen.spread, seen.edits)
