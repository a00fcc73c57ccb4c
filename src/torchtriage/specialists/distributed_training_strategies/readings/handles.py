"""What a record says about transfers that nobody waits for."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.distributed_training_strategies.probes.events import Handles

FEWEST = 8  # handles of one line
DROPPED = 0.2  # of them, of which nobody knew that they were done


@detector("run/handle-not-waited")
def handle_not_waited(record: RankRecord) -> Iterator[Sighting]:
    """Asynchronous transfers that nobody waits for in the whole run, and that were not found done either."""
    for event in unwaited(record):
        left = event.made - event.done
        fact = f"{left} of {event.made} handles of {event.op} were dropped before the transfer was known to be "
        fact += "done, and nothing in the run waits for any: whether the values are there in time is luck"
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank)
        yield Sighting(place, fact, float(left), "handles")


def unwaited(record: RankRecord) -> list[Handles]:
    """The last word on each line whose handles were dropped."""
    last = {(event.path, event.line): event for event in record.all(Handles)}
    if any(event.waits for event in last.values()):
        return []
    return [each for each in last.values() if each.made >= FEWEST and each.made - each.done >= DROPPED * each.made]
