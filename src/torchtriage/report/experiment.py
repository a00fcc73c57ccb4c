"""What an experiment has tried, a line for each change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from torchtriage.core.plain import number, within
from torchtriage.report.figure import figure
from torchtriage.report.text import count, line

CHANGES = {
    "learning-rate": "learning rate x {:g}",
    "weight-decay": "no weight decay",
    "clipping": "no clipping",
    "dropout": "no dropout",
    "autocast": "no autocast",
    "one-batch": "one batch only",
    "other-targets": "targets of other samples",
}
"""By intervention; {} stands for its value."""


class Tried(Struct, frozen=True):
    """title: of the part. rows: what was changed, and what came of it."""

    title: str
    rows: tuple[tuple[str, str], ...]


def tried(measurements: dict[str, Any]) -> Tried | None:
    """None of a case without an experiment, and where nothing could be tried."""
    told = within(measurements, "experiment")
    rows = tuple(_rows(told)) if isinstance(told, dict) else ()
    if not rows:
        return None
    steps, trials = (int(number(within(told, name)) or 0) for name in ("steps", "branches"))
    seconds = figure(number(within(told, "seconds")) or 0.0, "s")
    return Tried(f"Tried from the first step: {count(trials, 'trial')} of {steps} steps each, in {seconds}", rows)


def _rows(told: dict[str, Any]) -> Iterator[tuple[str, str]]:
    start = number(told.get("start"))
    for each in _dicts(told.get("arms")):
        end = number(each.get("end"))
        to = f"the loss goes from {start:.3g} to {end:.3g}" if start is not None and end is not None else "not finite"
        yield name(each.get("changes")), f"{to}{_further(each)}"
    for each in _dicts(told.get("without_result")):
        yield name(each.get("changes")), f"no result: {line(str(each.get('why')))}"


def _further(each: dict[str, Any]) -> str:
    """How it did beside the job as it is, where several pairs tell."""
    value, spread = number(each.get("further")), each.get("spread")
    if value is None or not isinstance(spread, list | tuple):
        return ""
    if each.get("at_least") is True:
        return f"; further than unchanged by {value:.0%} or more"
    low, high = (number(end) or 0.0 for end in spread)
    return f"; further than unchanged by {value:.0%} (95 % interval {low:.0%} to {high:.0%})"


def name(changes: Any) -> str:
    """What an arm changes, in words."""
    rows = changes.items() if isinstance(changes, dict) else ()
    return ", ".join(CHANGES.get(each, line(each)).format(number(value) or 0.0) for each, value in rows) or "unchanged"


def _dicts(rows: Any) -> list[dict[str, Any]]:
    return [each for each in rows if isinstance(each, dict)] if isinstance(rows, list | tuple) else []
