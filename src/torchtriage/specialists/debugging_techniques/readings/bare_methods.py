"""What a record says about methods that are named and not called."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.debugging_techniques.probes.events import BareMethod


@detector("run/method-not-called")
def method_not_called(record: RankRecord) -> Iterator[Sighting]:
    """A statement of the training loop names a method, and calls it not."""
    for event in record.all(BareMethod):
        place = Place(path=event.path, line=event.line, rank=record.rank)
        yield Sighting(place, f"`{event.method}` was reached and is no call: write `{event.method}()`")
