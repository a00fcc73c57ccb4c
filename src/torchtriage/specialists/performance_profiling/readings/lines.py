"""The lines of the user's code that take the time, from samples of where the training thread stood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from torchtriage.examine.run.job.events import Stacks, Where
from torchtriage.specialists.performance_profiling.probes.events import Aid, Built

ENOUGH_SAMPLES = 20  # of a phase
PART = 0.2  # of its samples, from which a line of the phase's own is named beside others
MOST = 0.5  # of its samples, from which one line stands for it
ALONE = 0.9  # of a line's samples, which belong to the phase that it stands for


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


def dominating(events: Iterable[Stacks], phase: str | None) -> Line | None:
    """The line in which most samples of PHASE stood, in the look at it that had the most; without a phase, of the
    whole step. None where they are spread or few.
    """
    lines = [line for event in events if (line := _dominating(event, phase)) is not None]
    return max(lines, key=lambda line: line.known, default=None)


def sharing(events: Iterable[Stacks], phase: str) -> list[Where]:
    """The lines that PHASE calls and in which a good part of its samples stood, the most frequent first."""
    best: tuple[int, list[Where]] = (0, [])
    for event in events:
        known = _known(event, phase)
        counts: Counter[Where] = Counter()
        for name, path, number, _, within, count in event.lines:
            if name == phase and within:
                counts[path, number] += count
        named = [where for where, count in counts.most_common(3) if count >= PART * known]
        best = max(best, (known, named)) if known >= ENOUGH_SAMPLES else best
    return best[1]


def calling(events: Iterable[Stacks], phase: str | None) -> list[Where]:
    """The lines below which most samples of PHASE stood, in the look at it that had the most: the innermost, and the
    outermost that is no line of the loop itself, which other phases go through too.
    """
    looks = [event for event in events if event.calls]
    look = max(looks, key=lambda each: _known(each, phase), default=Stacks())
    known = _known(look, phase)
    if known < ENOUGH_SAMPLES:
        return []
    loop = {(path, number) for path, number in look.loop}
    samples: dict[Where, dict[str, int]] = {}
    depths: dict[Where, int] = {}
    for name, path, number, _, within, depth, count in look.calls:
        if (path, number) not in loop and (within or phase != "data"):
            counts = samples.setdefault((path, number), {})
            counts[name] = max(counts.get(name, 0), count)
            depths[path, number] = max(depth, depths.get((path, number), 0))
    found = [where for where, counts in samples.items() if _stands_for(counts, phase, known)]
    ordered = sorted(found, key=lambda where: depths[where])
    return list(dict.fromkeys([*ordered[-1:], *ordered[:1]]))


def _stands_for(counts: dict[str, int], phase: str | None, known: int) -> bool:
    whole = sum(counts.values())
    return (whole if phase is None else counts.get(phase, 0)) >= max(MOST * known, ALONE * whole)


def caller(event: Aid | Built) -> list[Where]:
    """The nearest line that calls the one of EVENT, and is another: a comprehension stands on the line it is in."""
    return [(path, line) for path, line in event.calls if (path, line) != (event.path, event.line)][:1]


def _known(event: Stacks, phase: str | None) -> int:
    return sum(count for name, count in event.parts.items() if phase in (None, name))


def _dominating(event: Stacks, phase: str | None) -> Line | None:
    known = _known(event, phase)
    counts: Counter[Where] = Counter()
    first: dict[Where, tuple[str, bool]] = {}
    for name, path, number, function, within, count in event.lines:
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
