"""What there is to draw in a case: plain columns of figures; the page's script gives them form and colour."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.plain import number, within
from torchtriage.report.measures import PHASES
from torchtriage.report.measures import steps as steps_of
from torchtriage.report.text import count, line

POINTS = 1500
"""Steps drawn at most: more than a screen has columns."""

Figures: TypeAlias = tuple[float | None, ...]


class Mark(Struct, frozen=True):
    """A step to look at, and why. fault: the slug of the finding that names it; tone: how loudly it does."""

    step: int
    label: str
    fault: str = ""
    tone: str = "error"


class Plot(Struct, frozen=True):
    """Columns of figures over steps; None where there is no figure.

    stacked: whether the columns are layers of one whole. log: whether the figures span orders of magnitude.
    zero: whether the axis starts at zero, so that a small change looks small. axis: what a step is called. lines: the
    columns of a stacked plot that are no layers.
    """

    id: str
    title: str
    steps: tuple[int, ...]
    columns: dict[str, Figures]
    marks: tuple[Mark, ...] = ()
    unit: str = ""
    note: str = ""
    stacked: bool = False
    log: bool = False
    zero: bool = False
    axis: str = "step"
    lines: tuple[str, ...] = ()


def plots(case: Case) -> tuple[Plot, ...]:
    """The plots of CASE; none when no series was measured."""
    marks = _marks(case)
    drawn = (
        _time(case, marks),
        _pairs(case, "loss", "Loss", marks),
        _pairs(case, "grad_norm", "Gradient norm", marks),
        _pairs(case, "scale", "Loss scale", marks),
        _memory(case, marks),
    )
    return tuple(_thinned(plot) for plot in drawn if plot is not None and len(plot.steps) > 1)


def _time(case: Case, marks: tuple[Mark, ...]) -> Plot | None:
    """From measurements.timeline: "step" and, for each phase, its seconds in every step."""
    steps, timeline = _timeline(case)
    phases = {name: timeline[name] for name in PHASES if any(timeline.get(name, ()))}
    columns = {name: _times(figures, 1e3) for name, figures in phases.items()}
    title, note = "Where the time of each step goes", _drawn(steps, steps_of(case.measurements))
    ranks = within(case.measurements, "trace", "ranks")
    if isinstance(ranks, list | tuple) and len(ranks) > 1:
        note = f"{note} Each is the median of {count(len(ranks), 'rank')}.".strip()
    return Plot("time", title, steps, columns, marks, "ms", note, stacked=True, zero=True) if columns else None


def _drawn(steps: tuple[int, ...], measured: int | None) -> str:
    """That fewer steps are drawn than were measured: warm-up is left out, and a long run is thinned."""
    return f"{len(steps)} of {measured} steps are drawn." if measured is not None and len(steps) < measured else ""


def _memory(case: Case, marks: tuple[Mark, ...]) -> Plot | None:
    """From measurements.timeline: "rss" and "allocated", in bytes."""
    steps, timeline = _timeline(case)
    names = {"allocated": "allocated on the device", "rss": "resident on the host"}
    known = {said: timeline[name] for name, said in names.items() if any(timeline.get(name, ()))}
    highest = max((value for figures in known.values() for value in figures if value is not None), default=0.0)
    power, unit = (30, "GiB") if highest >= 2.0**30 else (20, "MiB")
    columns = {said: _times(figures, 2.0**-power) for said, figures in known.items()}
    return Plot("memory", "Memory", steps, columns, marks, unit, zero=True) if columns else None


def _pairs(case: Case, name: str, title: str, marks: tuple[Mark, ...]) -> Plot | None:
    """From pairs of step and figure. The first that is no finite number is marked."""
    pairs = within(case.measurements, name)
    known = [pair for pair in pairs if _is_pair(pair)] if isinstance(pairs, list | tuple) else []
    steps, figures = tuple(int(step) for step, _ in known), _column(figure for _, figure in known)
    finite = [figure for figure in figures if figure is not None]
    if not finite:
        return None
    gone = [
        Mark(step, f"{title.lower()} is not finite")
        for step, figure in zip(steps, figures, strict=True)
        if figure is None
    ]
    low, high = min(finite), max(finite)
    log = low > 0 and high > 100 * low
    return Plot(name, title, steps, {title.lower(): figures}, (*marks, *gone[:1]), log=log, zero=_flat(low, high))


def _flat(low: float, high: float) -> bool:
    """Whether figures from LOW to HIGH differ by so little that a fitted axis would make waves of it."""
    return low >= 0 and high - low <= 0.01 * high


def _is_pair(pair: Any) -> bool:
    return (
        isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], int) and number(pair[1]) is not None
    )


def _timeline(case: Case) -> tuple[tuple[int, ...], dict[str, Figures]]:
    """Steps, and columns as long as they; all empty when none was measured."""
    table = within(case.measurements, "timeline")
    steps = _column(within(table, "step") or ())
    whole = tuple(int(step) for step in steps if step is not None)
    columns = {name: _column(values) for name, values in table.items()} if len(whole) == len(steps) > 0 else {}
    return whole, {name: figures for name, figures in columns.items() if len(figures) == len(whole)}


def _column(values: Any) -> Figures:
    """VALUES as figures that can be drawn."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes):
        return ()
    figures = map(number, values)
    return tuple(value if value is not None and isfinite(value) else None for value in figures)


def _times(figures: Figures, factor: float) -> Figures:
    return tuple(None if value is None else value * factor for value in figures)


def _marks(case: Case) -> tuple[Mark, ...]:
    """The first step that each fault names."""
    found: dict[str, Mark] = {}
    for finding in case.findings:
        slug, tone = finding.fault.slug, finding.fault.severity.value
        for item in finding.evidence:
            if item.place.step is not None:
                found.setdefault(slug, Mark(item.place.step, line(slug), slug, tone))
    return tuple(sorted(found.values(), key=lambda mark: (mark.step, mark.label)))


def _thinned(plot: Plot) -> Plot:
    """Every so many steps, and a note that says so; four digits of each figure."""
    stride = -(-len(plot.steps) // POINTS)
    note = plot.note if stride == 1 else f"One step in {stride} is drawn, of {count(len(plot.steps), 'step')}."
    columns = {name: tuple(map(_rounded, figures[::stride])) for name, figures in plot.columns.items()}
    return replace(plot, steps=plot.steps[::stride], columns=columns, note=note)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")
