"""What a record says about parameters that an optimizer has and that never get a gradient."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import End
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.module_design_patterns.probes.events import Unused


@detector("run/parameter-never-used")
def parameter_never_used(record: RankRecord) -> Iterator[Sighting]:
    """Parameters that an optimizer has, of modules that are never called, get no gradient in any step."""
    if not any(event.why == "exit" for event in record.all(End)):
        return  # what is trained later may still come
    modules: dict[tuple[str, str], list[Unused]] = {}
    for event in record.all(Unused):
        if not event.frozen and (event.partly or not event.ran):
            modules.setdefault((event.optimizer, event.module), []).append(event)
    for (optimizer, module), events in modules.items():
        first, steps = events[0], min(event.steps for event in events)
        place = Place(path=first.path or None, line=first.line or None, rank=record.rank, module=module)
        names = ", ".join(event.name for event in events[:3]) + (", …" if len(events) > 3 else "")
        size = sum(event.size for event in events)
        why = "whose module runs without it" if first.ran else "whose module was not called"
        fact = f"{names} ({size:,} numbers of {optimizer}, {why}) got no gradient in any of {steps} steps"
        yield Sighting(place, fact, float(steps), "steps")
