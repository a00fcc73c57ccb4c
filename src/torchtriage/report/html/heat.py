"""The phases of every rank over the steps, as a heat map; and how replicas drift apart, as a plot."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from torchtriage.core.plain import within
from torchtriage.report.html.plots import Plot
from torchtriage.report.measures import PHASES
from torchtriage.report.ranks import finite, whole
from torchtriage.report.replicas import replicas

_LEAST = 0.05  # of the longest phase: what differs by less stays pale

_PALE = 0.1  # of the strongest colour: a phase that never differs by as much is not drawn


class Heat(Struct, frozen=True):
    """By phase a row of milliseconds for each rank, and a row of how much more they are than the others' median.

    steps: the first of each bin; wide: how many steps a bin holds; span: the difference in milliseconds that has
    the strongest colour.
    """

    title: str
    note: str
    ranks: tuple[int, ...]
    steps: tuple[int, ...]
    wide: int
    times: dict[str, Rows]
    beyond: dict[str, Rows]
    span: float


Row = tuple[float | None, ...]
Rows = tuple[Row, ...]


def heat(measurements: dict[str, Any]) -> Heat | None:
    """None for one rank, and where the figures do not fit."""
    told = within(measurements, "ranks", "heat")
    ranks, steps = _numbers(within(told, "ranks")), _numbers(within(told, "steps"))
    wide = whole(within(told, "wide")) or 1
    phases = {name: _rows(within(told, "phases", name), len(ranks), len(steps)) for name in PHASES}
    times = {name: rows for name, rows in phases.items() if rows}
    if len(ranks) < 2 or not steps or not times:
        return None
    beyond = {name: _beyond(rows) for name, rows in times.items()}
    span = _span(times, beyond)
    alike = [name for name, rows in beyond.items() if _most(rows) < _PALE * span]
    alike = alike if len(alike) < len(times) else []
    bins = f"Each cell is the median over {wide} steps. " if wide > 1 else ""
    pale = f" In {_joined(alike)} they hardly differ." if alike else ""
    return Heat(
        "What each rank takes more or less than the others, by phase",
        f"{bins}Point at a cell for its time.{pale}",
        ranks,
        steps,
        wide,
        {name: rows for name, rows in times.items() if name not in alike},
        {name: rows for name, rows in beyond.items() if name not in alike},
        span,
    )


def _joined(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def divergence(measurements: dict[str, Any]) -> Plot | None:
    """How many tensors differ between ranks, look by look; None where all were the same, or nobody looked twice."""
    seen = replicas(measurements)
    if seen is None or not seen.apart or len(seen.looks) < 2:
        return None
    steps = tuple(look.step for look in seen.looks)
    counts = tuple(float(look.differing) for look in seen.looks)
    return Plot(
        "divergence", "Tensors that differ between ranks", steps, {"differing": counts}, unit="tensors", zero=True
    )


def _numbers(value: Any) -> tuple[int, ...]:
    listed = value if isinstance(value, list | tuple) else ()
    told = [whole(each) for each in listed]
    return tuple(each for each in told if each is not None) if None not in told else ()


def _rows(value: Any, ranks: int, bins: int) -> Rows:
    """Rows of milliseconds, or none where they are not as many, or not as long, as they have to be."""
    listed = [row for row in value if isinstance(row, list | tuple)] if isinstance(value, list | tuple) else []
    if len(listed) != ranks or any(len(row) != bins for row in listed):
        return ()
    return tuple(tuple(_rounded(finite(each)) for each in row) for row in listed)


def _beyond(rows: Rows) -> Rows:
    """By cell: how much more than the median of the others in the same steps; None where there is no other."""
    columns = [_apart(column) for column in zip(*rows, strict=True)]
    return tuple(zip(*columns, strict=True))


def _apart(column: Row) -> Row:
    known = sorted(value for value in column if value is not None)
    if len(known) < 2:
        return (None,) * len(column)
    return tuple(None if value is None else float(f"{value - _others(known, value):.4g}") for value in column)


def _others(known: Sequence[float], value: float) -> float:
    at = bisect_left(known, value)
    rest = [*known[:at], *known[at + 1 :]]
    middle = len(rest) // 2
    return rest[middle] if len(rest) % 2 else (rest[middle - 1] + rest[middle]) / 2


def _span(times: dict[str, Rows], beyond: dict[str, Rows]) -> float:
    """What sets a rank apart all along, what one cell in fifty exceeds, or a twentieth of the longest phase, whichever
    is most: noise stays pale, and one jolt hides nothing.
    """
    rows = [[cell for cell in row if cell is not None] for each in beyond.values() for row in each]
    sizes = sorted(abs(cell) for row in rows for cell in row)
    longest = max(_middle([cell for row in each for cell in row if cell is not None]) for each in times.values())
    jolts = sizes[int(0.98 * (len(sizes) - 1))] if sizes else 0.0
    return max(*(abs(_middle(row)) for row in rows), jolts, _LEAST * longest, 1e-3)


def _most(rows: Rows) -> float:
    return max((abs(cell) for row in rows for cell in row if cell is not None), default=0.0)


def _middle(cells: list[float]) -> float:
    return sorted(cells)[len(cells) // 2] if cells else 0.0


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else float(f"{seconds * 1e3:.4g}")
