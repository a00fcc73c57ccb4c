"""What a record says about a rank for which the others wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

from msgspec import Struct

from torchtriage.core.evidence import Place
from torchtriage.examine.detector import CannotSee, Sighting, detector
from torchtriage.examine.run.ranks.device_steps import device_steps, uses_device
from torchtriage.examine.run.ranks.meetings import Meeting, meetings
from torchtriage.examine.run.reader.unseen import world_size
from torchtriage.examine.run.record import RunRecord
from torchtriage.examine.run.series.quantiles import interval_of_median, own_seconds
from torchtriage.specialists.distributed_training_strategies.readings import delays

from . import device_waits
from .behind import Rows, behind, held_up
from .turns import HALF, Turns, turns

ENOUGH_STEPS = 20
WARM = 3  # steps at the start that tell nothing
LEAST = 0.002  # seconds a step: straggler.md says why
EXPLAINED = 0.2  # of its lateness, and LEAST, must be in the phases in which a straggler is slower
MOST = 0.7  # of the steps, in which a straggler is late
LATER = 1.2  # times as late at the last collective as at the first, from which that one tells: others came in between
BOUND = 0.1  # of the step: straggler.md's


class Late(Struct, frozen=True):
    """How late one rank comes to the FIRST or LAST collective of a step; seconds, later than half of the others.

    spread: the 95 % interval of the median. share: of the steps, in which it is late at all. step: a step's seconds.
    is_on_device: how long each device waited for all collectives of a step tells.
    """

    rank: int
    at: str
    seconds: float
    spread: tuple[float, float]
    share: float
    steps: tuple[int, ...]
    step: float
    is_on_device: bool = False

    def said(self, residual: float) -> str:
        low, high = (each * 1e3 for each in self.spread)
        clocks = f"; the clocks of the hosts are aligned to {residual * 1e3:.1f} ms" if residual else ""
        where = f"the {self.at} collective of a step"
        if self.is_on_device:
            where = "the collectives of a step, by how long the device of each waits for them"
        return (
            f"rank {self.rank} comes {self.seconds * 1e3:.1f} ms ({low:.1f} to {high:.1f}) later than the others to "
            f"{where}, in {self.share:.0%} of {len(self.steps)} steps{clocks}: they "
            f"wait for it {self.seconds / self.step:.0%} of a step of {self.step * 1e3:.1f} ms"
        )

    def shares(self) -> tuple[float, float]:
        return self.spread[0] / self.step, self.spread[1] / self.step


class Told(NamedTuple):
    """What is said of a rank for which the others wait for that share of a step."""

    said: tuple[str, ...]
    share: float
    spread: tuple[float, float] | None = None


@detector("run/straggler", timed=True)
def straggler(record: RunRecord) -> Iterator[Sighting]:
    """One rank comes late to the collectives of a step, and the others wait for it."""
    if len(record.ranks) < 2 or world_size(record.ranks) < 2:
        return
    on_device = any(map(uses_device, record.ranks))
    if on_device and not device_waits.steps_with_waits(record):
        return
    met = meetings(record)
    if met.all and len(met.steps) < ENOUGH_STEPS:
        raise CannotSee(f"the ranks met in {len(met.steps)} steps", f"Let the job run for {ENOUGH_STEPS + WARM} steps.")
    rows = {rank.rank: device_steps(rank) if on_device else rank.watched_steps for rank in record.ranks}
    by_rank = {rank: {step.step: step for step in steps} for rank, steps in rows.items()}
    least = max(met.residual, device_waits.LEAST if on_device else LEAST)
    worst: dict[int, tuple[Late, Late]] = {}
    by_turns: dict[int, Turns] = {}
    for group in met.groups:
        found = [each for each in met.of(group) if _told(each, by_rank)]
        for rank in group if len(found) >= ENOUGH_STEPS else ():
            by_turns.update((each.rank, each) for each in turns(found, by_rank, rank, least))
            pair = _late(found, by_rank, rank, is_on_device=on_device)
            worst[rank] = max(worst.get(rank, pair), pair, key=lambda each: each[0].seconds)
    for each in by_turns.values():
        if delays.explained(record, each.rank, each.steps) >= HALF * each.seconds:
            phases = delays.phases(record, each.rank, each.steps)
            yield from _placed(record, each.rank, each.mean, Told((each.said(), phases), each.lost))
    steady = [pair for rank, pair in worst.items() if rank not in by_turns]
    yield from _steady(record, steady, met.residual, least)


def _steady(record: RunRecord, worst: Sequence[tuple[Late, Late]], residual: float, least: float) -> Iterator[Sighting]:
    """Ranks that come LEAST seconds late in most steps; raises CannotSee where a busy machine may be why."""
    for raw, late in sorted(worst, key=lambda each: -each[0].seconds):
        if least < min(late.spread[0], raw.spread[0]) and late.share >= MOST:
            if delays.explained(record, late.rank, late.steps) < max(EXPLAINED * late.seconds, least):
                raise CannotSee(
                    f"{late.said(residual)}; but no phase of its steps is that much longer than the others'",
                    "Run the job on a machine that has nothing else to do: what is in the code stays.",
                )
            limit = delays.limit(record, late.rank, late.steps, late.seconds) if late.is_on_device else ""
            said = late.said(residual), delays.phases(record, late.rank, late.steps), limit
            yield from _placed(record, late.rank, late.seconds, Told(said, late.seconds / late.step, late.shares()))
        elif least < raw.spread[0] and raw.share >= MOST and raw.shares()[0] > BOUND:
            raise CannotSee(
                f"{raw.said(residual)}; but it waited for a CPU that much longer than they, on a busy machine",
                "Run the job on a machine that has nothing else to do.",
            )


def _told(meeting: Meeting, by_rank: Rows) -> bool:
    """Whether the clocks of all ranks told of the step."""
    return meeting.step >= WARM and all(meeting.step in by_rank[rank] for rank in meeting.group)


def _late(found: Sequence[Meeting], by_rank: Rows, rank: int, *, is_on_device: bool = False) -> tuple[Late, Late]:
    """As RANK came, and without what it waited for a CPU longer than the others do for as much work.

    What it waited less is not added: who waits for others is woken often, and stands in the queue for that as well.
    """
    queued = held_up(found, by_rank, rank)
    step = median(own_seconds(by_rank[each][met.step]) for each in found[0].group for met in found)
    steps, made = tuple(met.step for met in found), []
    for at in ("first", "last"):
        apart, pair = behind(found, rank, at), []
        for seconds in (sorted(apart), sorted(each - wait for each, wait in zip(apart, queued, strict=True))):
            share = sum(each > 0 for each in seconds) / len(seconds)
            pair.append(Late(rank, at, median(seconds), interval_of_median(seconds), share, steps, step, is_on_device))
        made.append((pair[0], pair[1]))
    first, last = made
    return last if last[1].spread[0] > LATER * max(first[1].spread[1], 0.0) else first


def _placed(record: RunRecord, rank: int, seconds: float, told: Told) -> Iterator[Sighting]:
    """TOLD, at the lines in which most of those SECONDS of a step go."""
    is_of_kernels = any(each.startswith(delays.KERNELS) for each in told.said)  # which no line of the host's shows
    line = None if is_of_kernels else delays.line(record, rank, seconds)
    said = "; ".join(filter(None, [*told.said, line.said if line else ""]))
    place = Place(path=line.path, line=line.number, rank=rank) if line else Place(rank=rank)
    yield Sighting(place, said, told.share, "of the step", told.spread)
    for path, number in line.callers if line else ():
        where = Place(path=path, line=number, rank=rank)
        yield Sighting(where, "that is called here", told.share, "of the step", told.spread)
