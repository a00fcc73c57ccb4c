"""What a record says about models of which little is trained."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.module_design_patterns.probes.events import Trained


@detector("run/only-norms-trained")
def only_norms_trained(record: RankRecord) -> Iterator[Sighting]:
    """Of a model nothing but its normalisation layers is trained; the share of its numbers that are."""
    for event in record.all(Trained):
        if event.norms < event.trained:
            continue
        fact = (
            f"{event.trained} of {event.of} numbers of {event.model} are trained, all of them in its "
            f"{event.layers} normalisation layers"
        )
        place = Place(module=event.model, rank=record.rank)
        yield Sighting(place, fact, event.trained / event.of, "of the parameters")
