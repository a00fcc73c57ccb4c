"""The lines of the user's code that take the time, from samples of where the training thread stood."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

ENOUGH_SAMPLES = 20  # of a phase
MOST = 0.5  # of its samples, from which one line stands for it


class Line(Struct, frozen=True):
    """A line that takes most of a phase, or of the whole step."""

    path: str
    number: int
    function: str
    share: float
    within: bool  # whether the phase calls it: else it calls the phase
    said: str


def dominating(event: dict[str, Any], phase: str | None = None) -> Line | None:
    """The line in which most samples of PHASE (of all phases when None) stood; None where they are spread or few."""
    lines = [each for each in event["lines"] if phase in (None, each[0])]
    known = sum(event["parts"].values()) if phase is None else event["parts"].get(phase, 0)
    if not lines or known < ENOUGH_SAMPLES:
        return None
    _, path, number, function, within, count = max(lines, key=lambda each: each[-1])
    if count < MOST * known:
        return None
    named = "the step" if phase is None else {"other": "that"}.get(phase, phase)
    said = f"{count / known:.0%} of {known} samples of {named} stand at {path}:{number} ({function})"
    return Line(path, number, function, count / known, within, said)
