"""What a record says about learning rate schedules."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.further import further
from torchtriage.examine.run.record import RankRecord


@detector("run/scheduler-before-optimizer")
def scheduler_before_optimizer(record: RankRecord) -> Iterator[Sighting]:
    """A schedule moves on before its optimizer's first step, and then before every other."""
    for event in record.all("schedule-led"):
        place = Place(path=event["path"], line=event["line"], rank=record.rank, step=0)
        fact = f"{event['schedule']} moved on before the first step of {event['optimizer']}, which never saw the "
        fact += f"first learning rate; so did each of its {event['calls']} calls: every rate comes one call early"
        yield from further(Sighting(place, fact, float(event["calls"]), "calls"), event)
