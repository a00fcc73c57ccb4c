"""Where the ranks of a run met: when each of them began a step's collectives, on one clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from torchtriage.examine.run.job.events import Collectives, Device, Start, Step, replace
from torchtriage.examine.run.ranks.device_steps import Wait, device_steps, uses_device, waits_by_step
from torchtriage.examine.run.record import RankRecord, RunRecord


@dataclass(frozen=True)
class Arrival:
    """How one rank came to a group's collectives in one step; moments in seconds since 1970.

    first, last: when it began the step's first collective and its last. numbers: theirs within the group.
    inner: when it began the last one within the backward; None where backward has none.
    level: when it had come to the end of one, and so every rank of the group had; None where that is not known.
    exposed: seconds from `inner` to the end of backward: in which backward had nothing to do but wait.
    """

    first: float
    last: float
    numbers: tuple[int, int]
    inner: float | None
    level: float | None
    exposed: float
    count: int
    bytes: int


@dataclass(frozen=True)
class Meeting:
    """A step of a group, as every rank of the group came to it."""

    step: int
    group: tuple[int, ...]
    by: Mapping[int, Arrival]


@dataclass(frozen=True)
class Meetings:
    """Those of a run, by step. residual: seconds, by which the clocks of its hosts may still differ; 0 on one host."""

    all: tuple[Meeting, ...]
    residual: float = 0.0

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The largest first."""
        return sorted({each.group for each in self.all}, key=lambda group: (-len(group), group))

    @property
    def steps(self) -> set[int]:
        return {each.step for each in self.all}

    def of(self, group: tuple[int, ...]) -> list[Meeting]:
        return [each for each in self.all if each.group == group]


def meetings(record: RunRecord) -> Meetings:
    """The steps that all ranks of a group have told of, with the same numbers: in others they did unlike things.

    On devices, of all ranks together: what ends for all of them at once has begun before as long as each waited for it.
    """
    if any(uses_device(rank) for rank in record.ranks):
        group = tuple(rank.rank for rank in record.ranks)
        found = [
            Meeting(step, group, {rank: _on_device(each) for rank, each in zip(group, devices, strict=True)})
            for step, devices in waits_by_step(record).items()
            if len(group) > 1 and devices[0].waits
        ]
        return Meetings(tuple(found))
    arrivals = {rank.rank: _arrivals(rank) for rank in record.ranks}
    keys = sorted({key for told in arrivals.values() for key in told})
    found = []
    for step, name, group in keys:
        by = {
            rank: arrivals[rank][step, name, group] for rank in group if (step, name, group) in arrivals.get(rank, {})
        }
        if len(by) == len(group) > 1 and len({each.numbers for each in by.values()}) == 1:
            found.append(Meeting(step, group, by))
    return _aligned(found, {rank.rank: _host(rank) for rank in record.ranks})


def exposed(record: RankRecord) -> dict[int, float]:
    """By step: seconds at the end of backward in which the rank waited for averages that backward had asked for; of no
    step on a device, whose clock has taken them out of backward.
    """
    if uses_device(record):
        return {}
    return {step: each.exposed for (step, _, _), each in _arrivals(record).items() if each.inner is not None}


def told_apart(record: RankRecord) -> list[Step]:
    """The steady steps, with the end of backward that only waits for other ranks counted as communication.

    A step that no look has told of waits as long as those usually do. On a device the host tells nothing of that.
    """
    known = exposed(record)
    if not known:
        return record.steps
    usual, apart = median(known.values()), []
    for step in record.steps:
        wait = min(known.get(step.step, usual), step.backward)
        apart.append(replace(step, backward=step.backward - wait, communication=step.communication + wait))
    return apart


def timed(record: RankRecord) -> list[Step]:
    """The steady steps with their phases told apart: by the device's clock, where that has timed them."""
    if not uses_device(record):
        return told_apart(record)
    steady = {step.step for step in record.steps}
    return [step for step in device_steps(record) if step.step in steady] or record.steps


def late(found: Meetings, rank: int) -> tuple[float, ...]:
    """By how many seconds RANK came later than half of the others to the first collective of each step."""
    return tuple(
        each.by[rank].first - median(other.first for number, other in each.by.items() if number != rank)
        for each in found.all
        if rank in each.by and each.group == found.groups[0]
    )


def _on_device(device: Device) -> Arrival:
    """Moments before the end of the step's collectives, which is the same for all ranks."""
    waited, size = device.communication, sum(Wait(*wait).bytes for wait in device.waits)
    return Arrival(-waited, -waited, (0, 0), None, 0.0, waited, len(device.waits), size)


def _arrivals(record: RankRecord) -> dict[tuple[int, str, tuple[int, ...]], Arrival]:
    """By step, and the group's name and ranks. A step right after a look is left out: the look held its rank up."""
    found = {}
    looks = record.all(Collectives)
    held = {0, *(look.step + 1 for look in looks)}
    for look in looks:
        ends = {end[0]: end for end in look.ends}
        for row in look.rows:
            step, index, *_ = row
            name, ranks = look.groups[index]
            if step not in held and len(row) == 9 and len(ends.get(step, ())) == 5:  # else of another version
                found[step, name, tuple(ranks)] = _arrival(look.base / 1e9, row[2:], ends[step])
    return found


def _arrival(base: float, row: tuple[int, int, int, int, int | None, int, int], end: Sequence[int]) -> Arrival:
    number, first, latest, last, inner, count, size = row
    _, _, propagated, waited, _ = end
    level = propagated if inner is not None else waited if waited > first else None
    return Arrival(
        base + first / 1e6,
        base + last / 1e6,
        (number, latest),
        None if inner is None else base + inner / 1e6,
        None if level is None else base + level / 1e6,
        0.0 if inner is None else (propagated - inner) / 1e6,
        count,
        size,
    )


def _host(record: RankRecord) -> str:
    """What tells apart whose clock it is: the host, or the whole job where it says that it has only one."""
    start = record.first(Start) or Start()
    given = start.environment
    if start.host is None and given.get("LOCAL_WORLD_SIZE") != given.get("WORLD_SIZE"):
        return f"rank {record.rank}"
    return start.host or ""


def _aligned(found: Sequence[Meeting], hosts: Mapping[int, str]) -> Meetings:
    """Brings all moments to the clock of the first rank's host, by the ends of collectives, which all ranks share."""
    names = list(dict.fromkeys(hosts[rank] for rank in sorted(hosts)))
    if len(names) < 2:
        return Meetings(tuple(found))
    shifts, residual = {names[0]: 0.0}, 0.0
    for name in names[1:]:
        apart = sorted(_apart(found, hosts, names[0], name))
        if apart:
            shifts[name] = median(apart)
            residual = max(residual, median(abs(each - shifts[name]) for each in apart))
    moved = (_moved(each, {rank: shifts.get(hosts[rank]) for rank in each.group}) for each in found)
    return Meetings(tuple(each for each in moved if each is not None), residual)


def _apart(found: Sequence[Meeting], hosts: Mapping[int, str], first: str, other: str) -> Iterator[float]:
    """By how much the clock of OTHER goes before that of FIRST, by each meeting of both."""
    for each in found:
        levels: dict[str, list[float]] = {}
        for rank, arrival in each.by.items():
            if arrival.level is not None:
                levels.setdefault(hosts[rank], []).append(arrival.level)
        if first in levels and other in levels:
            yield median(levels[other]) - median(levels[first])


def _moved(meeting: Meeting, shifts: Mapping[int, float | None]) -> Meeting | None:
    """None where the clock of a rank is not known."""
    by = {}
    for rank, arrival in meeting.by.items():
        shift = shifts[rank]
        if shift is None:
            return None
        inner, level = (None if each is None else each - shift for each in (arrival.inner, arrival.level))
        by[rank] = dataclasses.replace(
            arrival, first=arrival.first - shift, last=arrival.last - shift, inner=inner, level=level
        )
    return Meeting(meeting.step, meeting.group, by)
