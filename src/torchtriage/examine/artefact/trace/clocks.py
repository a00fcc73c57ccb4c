"""The clocks of the ranks, aligned by collectives: those that end for nobody before everybody has come end at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from msgspec.structs import replace

from torchtriage.examine.artefact.trace.rank import Met, RankSummary
from torchtriage.examine.artefact.trace.words import MEETING

NOISE = 5_000_000
"""Nanoseconds by which processes of one host, which has one clock, may end a collective apart: a scheduler's turn."""


@dataclass(frozen=True)
class Clocks:
    """What to take off a rank's times to lay it beside the others, nanoseconds, by rank; ranks that met nobody lack.

    residual: how far the ends of one collective still lie apart, in the median over those of the worst pair of ranks;
    None where no two ranks met.
    """

    offsets: dict[int, int]
    residual: int | None


def clocks(ranks: Sequence[tuple[int, RankSummary]]) -> Clocks:
    """Rank by rank, each against one that is aligned already."""
    ends = {
        rank: {each.key: told.base + each.end for each in told.met if each.operation in MEETING} for rank, told in ranks
    }
    hosts = {rank: told.host for rank, told in ranks}
    if not ends:
        return Clocks({}, None)
    first = max(ends, key=lambda rank: (len(ends[rank]), -rank))
    offsets, known = {first: 0}, dict(ends[first])
    residual: int | None = None
    left = [rank for rank in sorted(ends) if rank != first]
    while left:
        rank = max(left, key=lambda each: (len(ends[each].keys() & known.keys()), -each))
        apart = [end - known[key] for key, end in ends[rank].items() if key in known]
        if not apart:
            break
        offset = int(median(apart))
        offsets[rank] = 0 if hosts[rank] and hosts[rank] == hosts[first] and abs(offset) < NOISE else offset
        residual = max(residual or 0, int(median(abs(each - offsets[rank]) for each in apart)))
        for key, end in ends[rank].items():
            known.setdefault(key, end - offsets[rank])
        left.remove(rank)
    return Clocks(offsets, residual)


@dataclass(frozen=True)
class Arrival:
    """When each rank came to the first collective of a step, nanoseconds on the aligned clock, by rank."""

    step: int
    group: str
    begins: dict[int, int]

    def late(self, rank: int) -> int:
        """How much later than half of the others RANK came; negative for one that came earlier."""
        return self.begins[rank] - int(median(begin for each, begin in self.begins.items() if each != rank))


@dataclass(frozen=True)
class Transfer:
    """What a collective took once the last of its ranks had come, nanoseconds."""

    group: str
    ranks: tuple[int, ...]
    operation: str
    bytes: int
    nanoseconds: int


def together(ranks: Sequence[tuple[int, RankSummary]], aligned: Clocks) -> dict[Any, dict[int, Met]]:
    """The collectives that several ranks tell of, each rank's row of it on the aligned clock."""
    found: dict[Any, dict[int, Met]] = {}
    for rank, told in ranks:
        if rank not in aligned.offsets:
            continue
        offset = aligned.offsets[rank] - told.base
        for each in told.met:
            begin, end = each.begin - offset, each.end - offset
            found.setdefault(each.key, {})[rank] = replace(each, begin=begin, end=end)
    return {key: rows for key, rows in found.items() if len(rows) > 1}


def arrivals(met: Iterable[dict[int, Met]]) -> tuple[Arrival, ...]:
    """Of each step and each of the largest groups; later collectives queue behind the first and tell nothing."""
    firsts: dict[tuple[int, str], dict[int, Met]] = {}
    for rows in met:
        one = next(iter(rows.values()))
        place = (one.step, one.group)
        begun = min(row.begin for row in rows.values())
        if one.operation in MEETING and (
            place not in firsts or begun < min(row.begin for row in firsts[place].values())
        ):
            firsts[place] = rows
    largest = max((len(rows) for rows in firsts.values()), default=0)
    return tuple(
        Arrival(step, group, {rank: row.begin for rank, row in sorted(rows.items())})
        for (step, group), rows in sorted(firsts.items())
        if len(rows) == largest
    )


def transfers(met: Iterable[dict[int, Met]]) -> tuple[Transfer, ...]:
    """Of every collective; ends differ by what clocks leave, so the first end counts."""
    return tuple(
        Transfer(
            one.group,
            tuple(sorted(rows)),
            one.operation,
            one.bytes,
            max(min(row.end for row in rows.values()) - max(row.begin for row in rows.values()), 0),
        )
        for rows in met
        for one in [next(iter(rows.values()))]
        if one.operation in MEETING
    )
