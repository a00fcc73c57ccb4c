"""What a record says about schedules and skipped steps."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.mixed_precision_and_optimization.probes.events import ScheduleOnSkips
from torchtriage.specialists.mixed_precision_and_optimization.readings import scaling

FEW = 3  # advances on skipped steps that are too few to move a schedule
EVERY_STEP = 0.9  # advances for each turn of the optimizer that show a schedule by steps, not by epochs
SEARCHING = 0.1  # of the steps, where the scaler only looked for its first scale: a short warm-up is lost then
FAR = 10  # skipped steps of a search that began 1000 times too high, as no default does
SEARCHING_FAR = 0.05  # of the steps, then
COLLAPSING = 0.02  # of scale-collapsing: then that is the fault


@detector("run/scheduler-on-skipped-step")
def scheduler_on_skipped_step(record: RankRecord) -> Iterator[Sighting]:
    """A schedule by steps went on with every step that the scaler skipped."""
    event = max(record.all(ScheduleOnSkips), key=lambda each: each.followed, default=None)
    steps = record.every_step
    if event is None or event.followed < FEW or not steps:
        return
    turns = event.taken + event.skips
    if event.advances < EVERY_STEP * turns or scaling.collapses(record, COLLAPSING):
        return
    skipped = sum(bool(step.skipped) for step in steps)
    share = event.followed / event.skips * skipped / len(steps)
    bound = SEARCHING_FAR if event.followed >= FAR else SEARCHING
    if scaling.skips_after_search(record) < FEW and share < bound:
        return
    place = Place(path=event.path or None, line=event.line or None, rank=record.rank, step=event.first)
    fact = (
        f"{event.scheduler} advanced with {event.followed} of {event.skips} skipped steps that were watched: "
        f"{skipped} of {len(steps)} steps of the run moved the schedule and no weight"
    )
    yield Sighting(place, fact, share, "of the steps")
