"""What a record says about a rank for which the others wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from statistics import median

from msgspec import Struct

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.measure import cpu_got, own_seconds
from torchtriage.examine.run.ranks.meetings import Meeting, meetings
from torchtriage.examine.run.record import Event, RunRecord
from torchtriage.examine.run.series import interval_of_median
from torchtriage.examine.run.unseen import world_size
from torchtriage.specialists.distributed_training_strategies.readings import delays

ENOUGH_STEPS = 20
WARM = 3  # steps at the start that tell nothing
LEAST = 0.002  # seconds a step: straggler.md says why
EXPLAINED = 0.2  # of its lateness, and LEAST, must be in the phases in which a straggler is slower
MOST = 0.7  # of the steps, in which a straggler is late
BUSY = 0.8  # share of the CPU time it wants that a thread gets
LATER = 1.2  # times as late at the last collective as at the first, from which that one tells: others came in between
BOUND = 0.1  # of the step: straggler.md's


class Late(Struct, frozen=True):
    """How late one rank comes to the FIRST or LAST collective of a step; seconds, later than half of the others.

    spread: the 95 % interval of the median. share: of the steps, in which it is late at all. step: a step's seconds.
    """

    rank: int
    at: str
    seconds: float
    spread: tuple[float, float]
    share: float
    steps: tuple[int, ...]
    step: float

    def said(self, residual: float) -> str:
        low, high = (each * 1e3 for each in self.spread)
        clocks = f"; the clocks of the hosts are aligned to {residual * 1e3:.1f} ms" if residual else ""
        return (
            f"rank {self.rank} comes {self.seconds * 1e3:.1f} ms ({low:.1f} to {high:.1f}) later than the others to "
            f"the {self.at} collective of a step, in {self.share:.0%} of {len(self.steps)} steps{clocks}: they "
            f"wait for it {self.seconds / self.step:.0%} of a step of {self.step * 1e3:.1f} ms"
        )

    def shares(self) -> tuple[float, float]:
        return self.spread[0] / self.step, self.spread[1] / self.step


@detector("run/straggler")
def straggler(record: RunRecord) -> Iterator[Sighting]:
    """One rank comes late to the collectives of a step, and the others wait for it."""
    if len(record.ranks) < 2 or world_size(record.ranks) < 2:
        return
    if any(row.get("allocated") for row in record.ranks[0].steps):
        raise CannotSee(
            "the host runs ahead of the device: when it asks for a collective is not when its rank is ready for it",
            "Profile the same ten steps on every rank with torch.profiler and compare when each enters a collective.",
        )
    met = meetings(record)
    if met.all and len(met.steps) < ENOUGH_STEPS:
        raise CannotSee(f"the ranks met in {len(met.steps)} steps", f"Let the job run for {ENOUGH_STEPS + WARM} steps.")
    by_rank = {rank.rank: {row.get("step"): row for row in rank.every_step} for rank in record.ranks}
    worst: dict[int, tuple[Late, Late]] = {}
    for group in met.groups:
        found = [each for each in met.of(group) if _told(each, by_rank)]
        for rank in group if len(found) >= ENOUGH_STEPS else ():
            pair = _late(found, by_rank, rank)
            worst[rank] = max(worst.get(rank, pair), pair, key=lambda each: each[0].seconds)
    for raw, late in sorted(worst.values(), key=lambda each: -each[0].seconds):
        least = max(met.residual, LEAST)
        if least < min(late.spread[0], raw.spread[0]) and late.share >= MOST:
            if delays.explained(record, late.rank, late.steps) < max(EXPLAINED * late.seconds, LEAST):
                raise CannotSee(
                    f"{late.said(met.residual)}; but no phase of its steps is that much longer than the others'",
                    "Run the job on a machine that has nothing else to do: what is in the code stays.",
                )
            yield from _sightings(record, late, met.residual)
        elif least < raw.spread[0] and raw.share >= MOST and raw.shares()[0] > BOUND:
            raise CannotSee(
                f"{raw.said(met.residual)}; but it waited for a CPU that much longer than they, on a busy machine",
                "Run the job on a machine that has nothing else to do.",
            )


def _told(meeting: Meeting, by_rank: dict[int, dict[int | None, Event]]) -> bool:
    """Whether the clocks of all ranks told of the step."""
    return meeting.step >= WARM and all(meeting.step in by_rank[rank] for rank in meeting.group)


def _late(found: Sequence[Meeting], by_rank: dict[int, dict[int | None, Event]], rank: int) -> tuple[Late, Late]:
    """As RANK came, and without what it waited for a CPU longer than the others do for as much work.

    What it waited less is not added: who waits for others is woken often, and stands in the queue for that as well.
    """
    others = [each for each in found[0].group if each != rank]
    rows = {each: [by_rank[each][met.step] for met in found] for each in found[0].group}
    pace = _queueing([row for each in others for row in rows[each]])
    queued = [
        max(_beyond(mine, pace) - median(_beyond(row, pace) for row in theirs), 0.0)
        for mine, *theirs in zip(rows[rank], *(rows[each] for each in others), strict=True)
    ]
    step = median(own_seconds(row) for each in rows.values() for row in each)
    steps, made = tuple(met.step for met in found), []
    for at in ("first", "last"):
        apart = [getattr(met.by[rank], at) - median(getattr(met.by[each], at) for each in others) for met in found]
        pair = []
        for seconds in (sorted(apart), sorted(each - wait for each, wait in zip(apart, queued, strict=True))):
            share = sum(each > 0 for each in seconds) / len(seconds)
            pair.append(Late(rank, at, median(seconds), interval_of_median(seconds), share, steps, step))
        made.append((pair[0], pair[1]))
    first, last = made
    return last if last[1].spread[0] > LATER * max(first[1].spread[1], 0.0) else first


def _queueing(rows: Sequence[Event]) -> float:
    """Seconds in the queue for each second on a CPU; infinite where that machine is not busy, and nothing to blame."""
    cpu, queued = (sum(float(row.get(name) or 0) for row in rows) for name in ("cpu", "queued"))
    return queued / cpu if cpu and cpu_got(rows) < BUSY else inf


def _beyond(row: Event, pace: float) -> float:
    """Seconds that a step waited for a CPU longer than it would have at PACE."""
    return float(row.get("queued") or 0) - pace * float(row.get("cpu") or 0) if pace < inf else 0.0


def _sightings(record: RunRecord, late: Late, residual: float) -> Iterator[Sighting]:
    line = delays.line(record, late.rank, late.seconds)
    said = [late.said(residual), delays.phases(record, late.rank, late.steps), line.said if line else ""]
    value = late.seconds / late.step
    place = Place(path=line.path, line=line.number, rank=late.rank) if line else Place(rank=late.rank)
    yield Sighting(place, "; ".join(filter(None, said)), value, "of the step", late.shares())
    for path, number in line.callers if line else ():
        where = Place(path=path, line=number, rank=late.rank)
        yield Sighting(where, "that is called here", value, "of the step", late.shares())
