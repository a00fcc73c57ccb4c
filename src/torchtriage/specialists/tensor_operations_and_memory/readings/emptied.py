"""What a record says about the allocator's cache being emptied."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.tensor_operations_and_memory.probes.events import CacheEmptied

STEPS = 20  # fewer may be a start that is careful on purpose


@detector("run/empty-cache-in-loop")
def empty_cache_in_loop(record: RankRecord) -> Iterator[Sighting]:
    """The allocator's cache is emptied in nearly every step."""
    latest = {(event.path, event.line): event for event in record.all(CacheEmptied)}
    for event in latest.values():
        share = event.steps / (event.last - event.first + 1)
        if event.steps >= STEPS:
            asked = event.asked / event.steps
            yield Sighting(
                Place(path=event.path or None, line=event.line or None, rank=record.rank),
                f"the allocator's cache was emptied in {event.steps} steps, {share:.0%} of those since step "
                f"{event.first}; the driver was asked for memory {asked:.1f} times in each of them",
                share,
            )
