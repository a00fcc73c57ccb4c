"""The clocks of the ranks, aligned by collectives: those that end for nobody before everybody has come end at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
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
    aligned = _Aligned({rank: told.host for rank, told in ranks})
    left = sorted((rank for rank in ends if ends[rank]), key=lambda rank: (-len(ends[rank]), rank))
    while left:
        rank = next((rank for rank in left if not aligned.known.keys().isdisjoint(ends[rank])), left[0])
        aligned.add(rank, ends[rank])
        left.remove(rank)
    return Clocks({rank: aligned.offsets[rank] for rank in sorted(aligned.met)}, aligned.residual)


class _Aligned:
    """The ranks so far. Those that met none of them begin anew: they are only compared with those that they met."""

    def __init__(self, hosts: dict[int, str | None]) -> None:
        self.hosts, self.known, self.offsets = hosts, dict[Any, tuple[int, int]](), dict[int, int]()
        self.met: set[int] = set()
        self.residual: int | None = None

    def add(self, rank: int, ends: dict[Any, int]) -> None:
        found = [(end - self.known[key][0], self.known[key][1]) for key, end in ends.items() if key in self.known]
        self.offsets[rank] = 0
        if found:
            first, offset = found[0][1], int(median(apart for apart, _ in found))
            is_one_host = self.hosts[rank] and self.hosts[rank] == self.hosts[first]
            is_one_clock = is_one_host and abs(offset - self.offsets[first]) < NOISE
            self.offsets[rank] = self.offsets[first] if is_one_clock else offset
            apart = int(median(abs(each - self.offsets[rank]) for each, _ in found))
            self.residual = max(self.residual or 0, apart)
            self.met |= {rank, first}
        for key, end in ends.items():
            self.known.setdefault(key, (end - self.offsets[rank], rank))


@dataclass(frozen=True)
class Arrival:
    """When each rank came to the first collective of a step, nanoseconds on the aligned clock, by rank."""

    step: int
    group: str
    begins: dict[int, int]

    @cached_property
    def _in_order(self) -> list[int]:
        return sorted(self.begins.values())

    def late(self, rank: int) -> int:
        """How much later than half of the others RANK came; negative for one that came earlier."""
        own, order = self.begins[rank], self._in_order
        at, middle = bisect_left(order, own), (len(order) - 1) // 2
        above, below = order[middle + (middle >= at)], order[middle - 1 + (middle - 1 >= at)]
        return own - (above if len(order) % 2 == 0 else (above + below) // 2)


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
