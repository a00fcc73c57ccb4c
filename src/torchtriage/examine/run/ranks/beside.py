"""The ranks of a job side by side: where each one's time goes, what sets it apart from the others, how it ended."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isfinite
from typing import Any

from torchtriage.examine.run.job.events import End, Error, Setup, Start, Step
from torchtriage.examine.run.ranks.meetings import timed
from torchtriage.examine.run.record import RankRecord
from torchtriage.examine.run.series.quantiles import interval_of_median, quantile, thinned

Columns = Mapping[str, Sequence[Any]]
Figures = tuple[float, float, float]  # a median and its 95 % interval, in seconds
Track = tuple[Sequence[int], Mapping[str, Sequence[float]]]  # numbers of steps, and by phase the seconds of each

DRAWN = 64
"""Ranks in a heat map: of more, half of them are the slowest, the other half evenly chosen."""
ROWS = 3000
"""Steps of each rank, evenly chosen, that its medians and its row are made of."""
BINS = 60
FEWEST = 8
"""Steady steps below which a median is not compared."""
NOTABLE = 0.05
"""Of the median step: what differs by less is not worth a word on a machine that others use too."""
LEAST = 1e-6
"""Seconds: a phase that never takes as long is not drawn."""
WAITING = frozenset({"backward", "communication", "idle"})
"""Phases in which ranks also wait for one another: the slowest one spends the least there."""


def side_by_side(
    records: Sequence[RankRecord], each: Sequence[dict[str, Any]], columns: Callable[[Sequence[Step]], Columns]
) -> dict[str, Any]:
    """What is known of several ranks beyond EACH of them, by the names of the interface.

    COLUMNS: makes of rows of steps a column of their numbers, `step`, and one of seconds for each phase. `seconds`
    are medians; `differs` holds, of the step and of each phase, the seconds beyond the median of the other ranks,
    where that is more than noise.
    """
    rows = [{**row, **_described(record)} for row, record in zip(each, records, strict=True)]
    return laid(rows, lambda index: _track(columns(thinned(timed(records[index]), ROWS))))


def laid(rows: Sequence[dict[str, Any]], track: Callable[[int], Track], enough: int = FEWEST) -> dict[str, Any]:
    """`each`, the ROWS with what sets their ranks apart, and `heat`, of those that have ENOUGH steps.

    TRACK: the steps and phases of the rank of a row, made as often as it is asked for, so that those of thousands need
    not be held at once.
    """
    known = [_medians(track(index)[1], enough) for index in range(len(rows))]
    usual = [figures["step"][0] for figures in known if figures]
    floor = NOTABLE * quantile(sorted(usual), 0.5) if usual else 0.0
    told = [
        {
            **row,
            "seconds": {name: figures[name][0] for name in figures if name != "step"} or None,
            "differs": differs,
        }
        for row, figures, differs in zip(rows, known, _apart(known, floor), strict=True)
    ]
    chosen = _chosen([_own(figures) for figures in known])
    return {"each": told, "heat": _heat([rows[index]["rank"] for index in chosen], len(rows), map(track, chosen))}


def _described(record: RankRecord) -> dict[str, Any]:
    """Where the rank ran, the most memory it held in bytes, and how it ended."""
    start = record.first(Start) or Start()
    models = [model for setup in record.all(Setup) for model in setup.models]
    return {
        "host": start.host,
        "pid": start.pid,
        "device": ", ".join(sorted({name for model in models for name in model.get("devices") or ()})) or None,
        "memory": {
            "rss": max((step.rss for step in record.every_step if step.rss), default=None),
            "peak": max((step.peak for step in record.every_step if step.peak), default=None),
        },
        "ended": _ended(record),
    }


def _ended(record: RankRecord) -> str:
    """error, or why it left: exit, steps; unknown where nothing was written at the end."""
    if record.has(Error):
        return "error"
    end = record.first(End)
    return end.why or "exit" if end is not None else "unknown"


def _medians(phases: Mapping[str, Sequence[float]], enough: int) -> dict[str, Figures]:
    """Of each phase, and of the step; nothing where there are fewer than ENOUGH."""
    whole = [sum(told) for told in zip(*phases.values(), strict=True)]
    if len(whole) < enough:
        return {}
    ordered = {"step": sorted(whole), **{name: sorted(seconds) for name, seconds in phases.items()}}
    return {name: (quantile(seconds, 0.5), *interval_of_median(seconds)) for name, seconds in ordered.items()}


def _apart(known: Sequence[dict[str, Figures]], floor: float) -> list[dict[str, float]]:
    """By rank: the seconds beyond the median of the others, where the near end of that difference exceeds FLOOR."""
    names = next((tuple(figures) for figures in known if figures), ())
    ordered = {
        name: [sorted(figures[name][part] for figures in known if figures) for part in range(3)] for name in names
    }
    told: list[dict[str, float]] = []
    for figures in known:
        differences = {name: _beyond(figures[name], ordered[name]) for name in figures} if figures else {}
        told.append({name: beyond for name, (beyond, near) in differences.items() if near > floor})
    return told


def _beyond(mine: Figures, ordered: Sequence[Sequence[float]]) -> tuple[float, float]:
    """The difference to the median of the others, and the size of its near end; ORDERED holds mine too."""
    if len(ordered[0]) < 2:
        return 0.0, 0.0
    usual, low, high = (_without(values, value) for values, value in zip(ordered, mine, strict=True))
    beyond = mine[0] - usual
    return beyond, mine[1] - high if beyond > 0 else low - mine[2]


def _without(ordered: Sequence[float], value: float) -> float:
    """The median of ORDERED without one VALUE."""
    at = bisect_left(ordered, value)
    return quantile([*ordered[:at], *ordered[at + 1 :]], 0.5)


def _own(figures: Mapping[str, Figures]) -> tuple[float, float] | None:
    """The seconds of the step, and those outside of the phases in which ranks wait for one another."""
    if not figures:
        return None
    own = sum(told[0] for name, told in figures.items() if name not in WAITING and name != "step")
    return figures["step"][0], own


def _chosen(own: Sequence[tuple[float, float] | None]) -> list[int]:
    """At most DRAWN of the ranks that have steps, in order."""
    known = [(index, seconds) for index, seconds in enumerate(own) if seconds is not None]
    if len(known) <= DRAWN:
        return [index for index, _ in known]
    usual = [quantile(sorted(seconds[part] for _, seconds in known), 0.5) for part in range(2)]
    by_pace = sorted(known, key=lambda item: -max(item[1][0] - usual[0], item[1][1] - usual[1]))
    slow = {index for index, _ in by_pace[: DRAWN // 2]}
    rest = thinned([index for index, _ in known if index not in slow], DRAWN // 2)
    return sorted((*slow, *rest))


def _heat(ranks: Sequence[int], of: int, known: Iterable[Track]) -> dict[str, Any] | None:
    """By phase a row for each of RANKS: the median seconds in bins of steps that are the same on all; None where it has
    no step in the bin. OF: how many ranks there are.
    """
    tracks = list(known)
    numbers = [step for steps, _ in tracks for step in steps]
    if not numbers:
        return None
    first, last = min(numbers), max(numbers)
    wide = -(-(last - first + 1) // BINS)
    kept = sorted({(step - first) // wide for step in numbers})
    names = dict.fromkeys(name for _, phases in tracks for name in phases)
    drawn = [name for name in names if any(max(phases.get(name, ()), default=0) >= LEAST for _, phases in tracks)]
    return {
        "of": of,
        "ranks": list(ranks),
        "steps": [first + wide * each for each in kept],
        "wide": wide,
        "phases": {
            name: [
                _row(_binned(steps, phases.get(name, [0.0] * len(steps)), first, wide), kept)
                for steps, phases in tracks
            ]
            for name in drawn
        },
    }


def _track(columns: Columns) -> Track:
    """The numbers of the steps and the seconds of each phase, of those steps whose figures are all finite."""
    names = [name for name in columns if name != "step"]
    rows = zip(columns["step"], *(columns[name] for name in names), strict=True)
    whole = [row for row in rows if isinstance(row[0], int) and all(map(isfinite, row[1:]))]
    return [row[0] for row in whole], {name: [row[at] for row in whole] for at, name in enumerate(names, start=1)}


def _binned(steps: Iterable[int], seconds: Iterable[float], first: int, wide: int) -> dict[int, list[float]]:
    bins: dict[int, list[float]] = {}
    for step, value in zip(steps, seconds, strict=True):
        bins.setdefault((step - first) // wide, []).append(value)
    return bins


def _row(bins: Mapping[int, list[float]], kept: Iterable[int]) -> list[float | None]:
    return [float(f"{quantile(sorted(bins[each]), 0.5):.4g}") if each in bins else None for each in kept]
