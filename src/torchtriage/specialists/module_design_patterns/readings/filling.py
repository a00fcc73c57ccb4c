"""What a record says about parameters that nobody has filled."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Unfilled
from torchtriage.examine.run.record import RankRecord


@detector("run/uninitialised-parameter")
def uninitialised_parameter(record: RankRecord) -> Iterator[Sighting]:
    """A parameter went into its first forward pass with what its memory held when it was made."""
    for event in record.all(Unfilled):
        if event.zero and (event.by_hand or len(event.shape) < 2):
            continue  # zeros may have been written, too; a bias of zeros is a start like another
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank, module=event.module)
        shape = " x ".join(map(str, event.shape))
        found = f"sizes from {event.smallest:.1e} to {event.largest:.1e}"
        bad = event.of - event.finite
        found += f", {bad} of {event.of} looked at not finite" if bad else ""
        fact = f"{event.class_}: {event.module} ({shape}) was not filled before its first use"
        yield Sighting(place, f"{fact}: {'zeros of a fresh page' if event.zero else found}")
