"""What a record says about random generators that a dataset holds."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.checkpointing_and_reproducibility.probes.events import Drawn


@detector("run/dataset-owned-rng")
def dataset_owned_rng(record: RankRecord) -> Iterator[Sighting]:
    """Workers began with the same state of a generator that the dataset holds, and drew from it."""
    last = {event.container: event for event in record.all(Drawn)}
    for container, event in last.items():
        alike, again = event.alike, event.again
        if not event.learned or (alike < 2 and not again):
            continue
        if alike > 1:
            fact = f"{alike} of {event.of} workers began with the same state of {container} "
            fact += f"({event.generator}) and drew from it: their random numbers are the same"
        else:
            fact = f"the worker began {again + 1} epochs with the same state of {container} ({event.generator}) "
            fact += "and drew from it"
        if alike > 1 and again:
            fact += f", and again in {again + 1} epochs"
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank, container=container)
        yield Sighting(place, fact, float(max(alike, again + 1)), "sequences alike")
