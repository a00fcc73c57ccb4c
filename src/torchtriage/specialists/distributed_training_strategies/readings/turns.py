"""A rank that comes late in every so many steps, and not in between."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from msgspec import Struct

from torchtriage.examine.run.ranks.meetings import Meeting
from torchtriage.examine.run.series.quantiles import own_seconds

from .behind import Rows, behind, held_up

TIMES, REGULAR = 8, 0.8  # times that a rank is late now and then, share of them that lie one and the same number apart
HALF = 0.5  # of a step, by which it must be late then
LOST = 0.2  # of all time, that the others wait for it


class Turns(Struct, frozen=True):
    """How late one rank comes in every so many steps, those in STEPS of OF; seconds: the median of those.

    lost: of all its time, what the others wait for it. mean: the same in seconds of any step.
    """

    rank: int
    every: int
    seconds: float
    steps: tuple[int, ...]
    of: int
    lost: float
    mean: float

    def said(self) -> str:
        return (
            f"rank {self.rank} comes {self.seconds * 1e3:.1f} ms later than the others in one step of {self.every} "
            f"({len(self.steps)} of {self.of} steps): they wait for it {self.lost:.0%} of the time"
        )


def turns(found: Sequence[Meeting], by_rank: Rows, rank: int, least: float) -> Iterator[Turns]:
    """Whether RANK is late in every so many steps: what comes at equal distances is in the code, not in the machine."""
    queued = held_up(found, by_rank, rank)
    step = median(own_seconds(by_rank[rank][met.step]) for met in found)
    bound = max(least, HALF * step)
    whole = sum(own_seconds(by_rank[rank][met.step]) for met in found)
    came = max((behind(found, rank, at) for at in ("first", "last")), key=sum)
    apart = [each - wait for each, wait in zip(came, queued, strict=True)]
    late = [(at, met.step, each) for at, (met, each) in enumerate(zip(found, apart, strict=True)) if each > bound]
    # of steps that lie apart because nobody watched those between them, nothing is known of what comes every so often
    gaps = Counter(later - step for (one, step, _), (other, later, _) in pairwise(late) if later - step == other - one)
    every, number = max(gaps.items(), key=lambda each: each[1], default=(0, 0))
    if sum(gaps.values()) < TIMES - 1 or every < 2 or number < REGULAR * sum(gaps.values()):
        return
    seconds = sorted(each for _, _, each in late)
    lost = sum(seconds[:-1]) / whole  # without the longest: one pause is no rule
    if lost >= LOST:
        steps = tuple(number for _, number, _ in late)
        yield Turns(rank, every, median(seconds), steps, len(found), lost, sum(seconds) / len(found))
