"""What a record says about hooks that pile up on one module."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Hooks
from torchtriage.examine.run.record import RankRecord


@detector("run/hook-handle-dropped")
def hook_handle_dropped(record: RankRecord) -> Iterator[Sighting]:
    """One line puts hook after hook on one module, and none is removed."""
    lines: dict[tuple[str, int], Hooks] = {}
    for event in record.all(Hooks):
        known = lines.get((event.path, event.line))
        if known is None or known.alive <= event.alive:
            lines[event.path, event.line] = event
    for (path, line), event in lines.items():
        place = Place(path=path or None, line=line or None, rank=record.rank, step=event.step, module=event.module)
        kind = event.list.replace("_", " ")
        fact = f"{event.alive} {kind} from one line are on one {event.class_} by step {event.step}"
        yield Sighting(place, fact, float(event.alive), "hooks")
