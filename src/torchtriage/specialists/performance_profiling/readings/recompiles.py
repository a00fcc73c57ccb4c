"""What a record says about frames that are compiled again and again."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.performance_profiling.probes.events import Recompiles

SAME = 5  # times that one kind of guard failed: recompiling.md defends it


@detector("run/recompiling")
def recompiling(record: RankRecord) -> Iterator[Sighting]:
    """torch.compile compiles one function again and again."""
    latest = {(event.name, event.path, event.line): event for event in record.all(Recompiles)}
    for event in latest.values():
        if not event.given_up and (event.repeated < SAME or _of_sizes(event.guard)):
            continue
        again = event.compiles - 1 + event.given_up
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank)
        yield Sighting(place, _said(event), float(again), "recompilations")
        yield from _beside(record, event, float(again))


def _beside(record: RankRecord, event: Recompiles, again: float) -> Iterator[Sighting]:
    """Where the compiler was asked for, and what changes."""
    told = [(where, "this changes what the guard holds") for where in event.changed]
    if event.compiled and event.compiled[0]:
        told.append((event.compiled, "the compiler is asked for here"))
    for (path, line), fact in told:
        if (path, line) != (event.path, event.line):
            yield Sighting(Place(path=path, line=line, rank=record.rank), fact, again, "recompilations")


def _of_sizes(guard: str) -> bool:
    """Sizes that come up again are few on purpose, as long as torch has not given up: buckets of lengths."""
    return any(word in guard for word in ("size", "shape", "stride"))


def _said(event: Recompiles) -> str:
    said = f"{event.name} was compiled {event.compiles} times ({event.seconds:.1f} s)"
    if event.guard:
        said += f", {event.repeated} times because `{event.guard}` or its like no longer held"
    return said + ("; then torch gave it up: it runs uncompiled" if event.given_up else "")
