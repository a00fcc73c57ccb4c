"""What a record says about passes through, and past, DistributedDataParallel."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.distributed_training_strategies.probes.events import Replica

AT_ONCE = 3  # steps of a wrapper that was never used
IN_A_ROW = 8  # steps of one that was used before
ACCUMULATED = 4  # steps


@detector("run/wrapper-bypassed")
def wrapper_bypassed(record: RankRecord) -> Iterator[Sighting]:
    """A module learned, step after step, without a pass through the DistributedDataParallel that holds it."""
    for event in _last(record):
        if event.averages or event.running < (IN_A_ROW if event.used else AT_ONCE):
            continue
        before = f", after {event.used} that did not" if event.used else ""
        fact = f"{event.bypassed} steps of {event.name} went past its DistributedDataParallel{before}: "
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank)
        yield Sighting(place, f"{fact}no gradient was averaged over the ranks", float(event.running), "steps")


@detector("run/no-sync-missing")
def no_sync_missing(record: RankRecord) -> Iterator[Sighting]:
    """Gradients that were only added up were averaged over the ranks all the same."""
    for event in _last(record):
        several, backwards = event.several, event.backwards
        if several < ACCUMULATED or event.spared:
            continue
        vain = backwards - several
        fact = f"{several} steps averaged the gradients of {event.name} {backwards} times where {several} were "
        fact += f"enough: {vain} of {backwards} all-reduces of {event.size} values for nothing"
        if event.late:
            fact += "; no_sync() held around backward only, and the forward pass had decided already"
        place = Place(path=event.again or None, line=event.at or None, rank=record.rank)
        yield Sighting(place, fact, backwards / several, "all-reduces a step")
        if event.late and event.entered:
            path, line = event.entered
            inside = Place(path=path or None, line=line or None, rank=record.rank)
            yield Sighting(
                inside, "this pass has to stand within no_sync(), too", backwards / several, "all-reduces a step"
            )


def _last(record: RankRecord) -> list[Replica]:
    """The last word on each."""
    return list({event.number: event for event in record.all(Replica)}.values())
