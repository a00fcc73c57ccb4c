"""Where each rank of a job that stands still waits or stands."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from msgspec import Struct

from torchtriage.core.plain import within
from torchtriage.report.figure import figure
from torchtriage.report.ranks import finite, whole
from torchtriage.report.text import line

_WORDS = {
    "waits": "waits",
    "still": "stands still",
    "busy": "works",
    "seen": "was seen once",
    "failed": "failed",
    "lost": "gave up waiting",
    "ended": "has ended",
    "silent": "wrote nothing more",
    "moves": "moves",
    "past": "has no collective under way",
}


class Hang(Struct, frozen=True):
    """ranks: one, or those that stand at the same place; stands: what they do there, and for how long."""

    ranks: str
    stands: str
    place: str


class _Rank(Struct, frozen=True):
    rank: int
    waits: bool
    does: str
    place: str
    seconds: float | None
    step: int | None


def hangs(measurements: dict[str, Any]) -> tuple[Hang, ...]:
    """One row for each place; those outside of a collective first, then the fewest: what all wait for is there."""
    rows = within(measurements, "ranks", "hang")
    listed = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list | tuple) else []
    known = sorted((_rank(row) for row in listed if whole(row.get("rank")) is not None), key=lambda each: each.rank)
    groups: dict[tuple[str, str], list[_Rank]] = {}
    for each in known:
        groups.setdefault((each.does, each.place), []).append(each)
    return tuple(_hang(group) for group in sorted(groups.values(), key=lambda group: (group[0].waits, len(group))))


def _rank(row: dict[str, Any]) -> _Rank:
    path, at = line(str(row.get("path") or "")), whole(row.get("line"))
    place = f"{path}:{at}" if path and at is not None else path
    return _Rank(
        row["rank"], bool(row.get("waits_in")), _does(row), place, finite(row.get("seconds")), whole(row.get("step"))
    )


def _does(row: dict[str, Any]) -> str:
    """What it does, as in: waits in all_reduce, number 41 of group 0."""
    state, error = row.get("state"), row.get("error")
    word = line(state) if isinstance(state, str) else ""
    known = _WORDS.get(word, word or "is in no collective")
    failed = f" with {line(error)}" if isinstance(error, str) and error and word == "failed" else ""
    return f"{known}{failed}{_where(row)}"


def _where(row: dict[str, Any]) -> str:
    waits, seq, group = row.get("waits_in"), whole(row.get("seq")), row.get("group")
    if not isinstance(waits, str) or not waits:
        return ""
    named = isinstance(group, str | int) and group != "" and not isinstance(group, bool)
    number = f", number {seq}" if seq is not None else ""
    return f" in {line(waits)}{number}" + (f" of group {line(str(group))}" if named and number else "")


def _hang(group: Sequence[_Rank]) -> Hang:
    seconds = [each.seconds for each in group if each.seconds is not None and each.seconds >= 0]
    steps = [each.step for each in group if each.step is not None]
    first = group[0]
    times = f", for {figure(min(seconds), 's')}" if seconds else ""
    steps_said = f"step {min(steps)}" + (f" to {max(steps)}" if max(steps) > min(steps) else "") if steps else ""
    return Hang(
        ranges([each.rank for each in group]),
        f"{first.does}{times}",
        ", ".join(filter(None, (first.place, steps_said))),
    )


def ranges(numbers: Sequence[int]) -> str:
    """NUMBERS, in order, as 0-2, 4."""
    ordered = sorted(set(numbers))
    starts = [ordered[0], *(after for before, after in pairwise(ordered) if after - before > 1)]
    ends = [*(before for before, after in pairwise(ordered) if after - before > 1), ordered[-1]]
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in zip(starts, ends, strict=True))
