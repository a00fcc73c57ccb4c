"""What a record says about gradients that the script clipped by itself while they were still scaled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting
from torchtriage.examine.run.job.events import ClippedByHook, EditedByHand
from torchtriage.examine.run.record import RankRecord

ENOUGH = 3  # changes that must all look so
SAME, EXPLAINED = 0.01, 0.01  # of a limit that is met each time; of a gradient that factor or clamp leave unexplained
SHORTER = 0.99  # a factor from which something was cut off
HARMLESS = 0.05  # of the scale: a limit this high was multiplied by the scale on purpose


def clipped(record: RankRecord) -> Iterator[Sighting]:
    """The limit that was met, where each change looks like a clip to one limit, and where it was."""
    events = [event for event in record.all(EditedByHand) if _finite(event)]
    if len(events) < ENOUGH:
        yield from _by_hook(record)
        return
    by = _limit(events)
    first = events[0]
    scale = first.scale
    if by is None or scale == 1.0 or by[1] > HARMLESS * scale:
        return
    what, limit = by
    fact = (
        f"the script clipped gradients still multiplied by the loss scale {scale:.0f} by itself, {what} {limit:.3g}: "
        f"{len(events)} times of {len(events)} that were looked at"
    )
    lines = next((event.lines for event in events if event.lines), [first.met])
    for path, line in lines[:2]:
        place = Place(path=path or None, line=line or None, rank=record.rank, step=first.at)
        yield Sighting(place, fact, scale, "loss scale")


def _by_hook(record: RankRecord) -> Iterator[Sighting]:
    """The same of gradients that a hook has clipped in the midst of backward: only what was left of them is known."""
    events = [e for e in record.all(ClippedByHook) if all(map(math.isfinite, e.sizes)) and min(e.sizes) > 0]
    scales = [event.scale for event in events if event.scale]
    if len(events) < ENOUGH or not scales:
        return
    sizes = [size for event in events for size in event.sizes]
    norms = [norm for event in events for norm in event.norms]
    limit = sizes[0] if _alike(sizes) else norms[0] if _alike(norms) else None
    if limit is None or scales[0] == 1.0 or limit > HARMLESS * scales[0]:
        return
    path, line = events[0].line
    what = "each number to a size of" if _alike(sizes) else "each gradient to a norm of"
    fact = f"a hook clipped gradients still multiplied by the loss scale {scales[0]:.0f}, {what} {limit:.3g}: "
    place = Place(path=path, line=line, rank=record.rank, step=events[0].at)
    yield Sighting(place, f"{fact}{len(events)} times of {len(events)} that were looked at", scales[0], "loss scale")


def _limit(events: Sequence[EditedByHand]) -> tuple[str, float] | None:
    """How it was clipped, and to what: a norm of all, a norm of each, or a size of each number."""
    shrunk = [[each for each in event.each if each[0] < SHORTER and each[1] < EXPLAINED] for event in events]
    factors = [three[0][0] for three in shrunk if three]
    if len(factors) == len(events) and max(factors) > (1 + SAME) * min(factors):
        if _alike([event.total for event in events]):
            return "to a norm of all of", events[0].total
        norms = [each[4] for three in shrunk for each in three]
        if _alike(norms):
            return "each to a norm of", norms[0]
    cut = [each[3] for event in events for each in event.each if each[2] < EXPLAINED < each[1]]
    if len(cut) >= len(events) and _alike(cut):
        return "each number to a size of", cut[0]
    return None


def _alike(values: Sequence[float]) -> bool:
    return min(values) > 0 and max(values) <= (1 + SAME) * min(values)


def _finite(event: EditedByHand) -> bool:
    """A gradient that overflowed tells nothing, nor one that was cleared."""
    numbers = [event.total, *(number for each in event.each for number in each)]
    return all(map(math.isfinite, numbers)) and event.total > 0
