"""The lines of the user's code that take the time, from samples of where the training thread stood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

ENOUGH_SAMPLES = 20  # of a phase
PART = 0.2  # of its samples, from which a line of the phase's own is named beside others
MOST = 0.5  # of its samples, from which one line stands for it


class Line(Struct, frozen=True):
    """A line that takes most of a phase.

    function: in which it stands. known: samples of the phase. within: the phase calls it, else it calls the phase.
    """

    path: str
    number: int
    function: str
    share: float
    known: int
    within: bool
    said: str


def dominating(events: Iterable[dict[str, Any]], phase: str | None) -> Line | None:
    """The line in which most samples of PHASE stood, in the look at it that had the most; without a phase, of the
    whole step. None where they are spread or few.
    """
    lines = [line for event in events if (line := _dominating(event, phase)) is not None]
    return max(lines, key=lambda line: line.known, default=None)


def sharing(events: Iterable[dict[str, Any]], phase: str) -> list[tuple[str, int]]:
    """The lines that PHASE calls and in which a good part of its samples stood, the most frequent first."""
    best: tuple[int, list[tuple[str, int]]] = (0, [])
    for event in events:
        known = sum(count for name, count in event["parts"].items() if name == phase)
        counts: Counter[tuple[str, int]] = Counter()
        for name, path, number, _, within, count in event["lines"]:
            if name == phase and within:
                counts[path, number] += count
        named = [where for where, count in counts.most_common(3) if count >= PART * known]
        best = max(best, (known, named)) if known >= ENOUGH_SAMPLES else best
    return best[1]


def _dominating(event: dict[str, Any], phase: str | None) -> Line | None:
    known = sum(count for name, count in event["parts"].items() if phase in (None, name))
    counts: Counter[tuple[str, int]] = Counter()
    first: dict[tuple[str, int], tuple[str, bool]] = {}
    for name, path, number, function, within, count in event["lines"]:
        if phase in (None, name):
            counts[path, number] += count
            first.setdefault((path, number), (function, within))
    if known < ENOUGH_SAMPLES or not counts:
        return None
    (path, number), count = counts.most_common(1)[0]
    if count < MOST * known:
        return None
    function, within = first[path, number]
    named = "the step" if phase is None else {"other": "that"}.get(phase, phase)
    said = f"{count / known:.0%} of {known} samples of {named} stand at {path}:{number} ({function})"
    return Line(path, number, function, count / known, known, within, said)
