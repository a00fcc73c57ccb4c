"""What a record says about learning rate schedules."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.further import further
from torchtriage.examine.run.record import RankRecord

SAME = 0.2  # by how much the steps of the optimizers may differ from the calls that a schedule was made for


@detector("run/schedule-unfinished")
def schedule_unfinished(record: RankRecord) -> Iterator[Sighting]:
    """The share of a schedule that was left when the job had ended by itself."""
    if not any(event.get("why") == "exit" for event in record.all("end")) or record.all("error"):
        return
    for event in record.all("planned"):
        calls, end, turns = event["calls"], event["end"], event["turns"]
        if not 0 < calls < end:
            continue
        fact = f"{event['schedule']} was made for {end} calls and had got {calls} when the job had ended"
        if event["rate"] is not None:
            fact += f", at a learning rate of {event['rate']:.3g}"
        if abs(turns - end) <= SAME * end and calls * 2 <= turns:
            fact += f"; the optimizer made {turns} steps: the schedule counts steps, and is called once for many"
        place = Place(path=event["path"] or None, line=event["line"] or None, rank=record.rank)
        yield Sighting(place, fact, 1 - calls / end, "of the schedule")


@detector("run/scheduler-before-optimizer")
def scheduler_before_optimizer(record: RankRecord) -> Iterator[Sighting]:
    """A schedule moves on before its optimizer's first step, and then before every other."""
    for event in record.all("schedule-led"):
        place = Place(path=event["path"], line=event["line"], rank=record.rank, step=0)
        fact = f"{event['schedule']} moved on before the first step of {event['optimizer']}, which never saw the "
        fact += f"first learning rate; so did each of its {event['calls']} calls: every rate comes one call early"
        yield from further(Sighting(place, fact, float(event["calls"]), "calls"), event)
