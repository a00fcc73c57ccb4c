"""What a record says about debugging aids that were left on."""

from __future__ import annotations

from collections.abc import Iterator

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import Sighting, detector
from torchtriage.examine.run.job.events import Error, NonFinite, Start
from torchtriage.examine.run.record import RankRecord
from torchtriage.specialists.performance_profiling.probes.events import Aid
from torchtriage.specialists.performance_profiling.readings.lines import caller

ENOUGH = {"anomaly mode": 50, "a profiler": 200}  # backward passes: debug-left-on.md defends them
NEARLY = 0.9  # of all backward passes


@detector("run/debug-left-on")
def debug_left_on(record: RankRecord) -> Iterator[Sighting]:
    """A debugging aid is on in nearly all of the training."""
    yield from _launched(record)
    last = {event.aid: event for event in record.all(Aid)}
    for aid, event in last.items():
        if event.on < max(ENOUGH[aid], NEARLY * event.of) or (aid == "anomaly mode" and _needed(record)):
            continue
        place = Place(path=event.path or None, line=event.line or None, rank=record.rank)
        fact = f"{aid} was on in {event.on} of {event.of} backward passes"
        share = event.on / event.of
        yield Sighting(place, fact, share, "of the backward passes")
        for path, line in caller(event):
            where = Place(path=path, line=line, rank=record.rank)
            yield Sighting(where, "this calls what switches it on", share, "of the backward passes")


def _launched(record: RankRecord) -> Iterator[Sighting]:
    """What the environment switches on, where the job uses a CUDA device."""
    start = record.first(Start) or Start()
    blocking = start.environment.get("CUDA_LAUNCH_BLOCKING") or "0"
    used = [row for row in record.every_step if row.allocated]
    if blocking != "0" and len(used) >= ENOUGH["anomaly mode"]:
        fact = f"CUDA_LAUNCH_BLOCKING={blocking} made the host wait for each kernel in {len(used)} steps"
        yield Sighting(Place(rank=record.rank), fact, 1.0, "of the steps")


def _needed(record: RankRecord) -> bool:
    """Whether the job ran into what the aid looks for."""
    return record.has(NonFinite) or record.has(Error)
