"""What a record says about containers that hold one layer several times."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.module_design_patterns.probes.events import Repeated


@detector("run/layers-shared-by-repetition")
def layers_shared_by_repetition(record: RankRecord) -> Iterator[Sighting]:
    """A container of the model holds one and the same layer in several places."""
    for event in record.all(Repeated):
        place = Place(path=event.path, line=event.line, rank=record.rank, module=event.module)
        fact = f"{event.times} of {event.places} places of a {event.container} are one and the same"
        said = f"{fact} {event.layer}: {event.parameters:,} weights in all"
        yield Sighting(place, said, float(event.times), "places")
        if event.again:
            told = f"{event.again} is the same {event.layer} as one before it"
            yield Sighting(Place(rank=record.rank, module=event.again), told, float(event.times), "places")
