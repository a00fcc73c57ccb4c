"""By how much a rank comes later than others to a collective, and how long it waited for a CPU meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from statistics import median

from torchtriage.examine.run.job.events import Step
from torchtriage.examine.run.measures.figures import cpu_got
from torchtriage.examine.run.ranks.meetings import Meeting

BUSY = 0.8  # share of the CPU time it wants that a thread gets

Rows = Mapping[int, Mapping[int, Step]]  # by rank and number


def behind(found: Sequence[Meeting], rank: int, at: str) -> list[float]:
    """Of each meeting, seconds by which RANK came later than half of the others to the first or last collective."""
    others = [each for each in found[0].group if each != rank]
    return [getattr(met.by[rank], at) - median(getattr(met.by[each], at) for each in others) for met in found]


def held_up(found: Sequence[Meeting], by_rank: Rows, rank: int) -> list[float]:
    """Of each meeting, seconds that RANK waited for a CPU longer than the others did for as much work."""
    others = [each for each in found[0].group if each != rank]
    rows = {each: [by_rank[each][met.step] for met in found] for each in found[0].group}
    pace = _queueing([row for each in others for row in rows[each]])
    return [
        max(_beyond(mine, pace) - median(_beyond(row, pace) for row in theirs), 0.0)
        for mine, *theirs in zip(rows[rank], *(rows[each] for each in others), strict=True)
    ]


def _queueing(rows: Sequence[Step]) -> float:
    """Seconds in the queue for each second on a CPU; infinite where that machine is not busy, and nothing to blame."""
    cpu, queued = sum(row.cpu for row in rows), sum(row.queued for row in rows)
    return queued / cpu if cpu and cpu_got(rows) < BUSY else inf


def _beyond(row: Step, pace: float) -> float:
    """Seconds that a step waited for a CPU longer than it would have at PACE."""
    return row.queued - pace * row.cpu if pace < inf else 0.0
