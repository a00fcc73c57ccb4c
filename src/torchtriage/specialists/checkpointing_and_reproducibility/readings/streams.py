"""What a record says about streams that several workers read."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.record.further import further
from torchtriage.specialists.checkpointing_and_reproducibility.probes.events import RepeatedSamples, Repeats, Stream

ROUNDS = 4
KINDS = 3  # different batches among those of the rounds: data that never change are no repetition
SAMPLES = 32  # of each worker
NEARLY_ALL = 0.9  # of its samples are different, and are those of the others: a draw at random repeats its own as well
VALUES = 8  # of a batch that were compared: fewer may be equal by chance


@detector("run/iterable-not-sharded")
def iterable_not_sharded(record: RankRecord) -> Iterator[Sighting]:
    """Every worker of a loader delivered the same batches, one after another."""
    last = {(event.path, event.line, event.dataset): event for event in record.all(Repeats)}
    for event in last.values():
        if event.alike < ROUNDS or event.kinds < KINDS or event.values < VALUES:
            continue
        workers, alike = event.workers, event.alike
        fact = f"{alike} times in succession the {workers} workers of {event.dataset} delivered {workers} equal "
        fact += f"batches: each runs the stream from its beginning, an epoch holds every sample {workers} times"
        yield from _sightings(record, event, fact)
        return
    for epoch in record.all(RepeatedSamples):
        least, different, shared = epoch.samples, epoch.different, epoch.shared
        if least < SAMPLES or epoch.most > 2 * least or min(different / least, shared / different) < NEARLY_ALL:
            continue
        fact = f"each of the {epoch.workers} workers of {epoch.dataset} delivered the same {shared} samples of an "
        fact += "epoch, in an order of its own: each runs the stream to its end, an epoch holds every sample "
        yield from _sightings(record, epoch, f"{fact}{epoch.workers} times")


def _sightings(record: RankRecord, event: Stream, fact: str) -> Iterator[Sighting]:
    place = Place(path=event.path or None, line=event.line or None, rank=record.rank)
    yield from further(Sighting(place, fact, float(event.workers), "times every sample"), event.further)
