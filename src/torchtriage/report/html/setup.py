"""The set-up of a run as rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchtriage.core.plain import within
from torchtriage.report.text import line

_LONGEST = 600


def setup(measurements: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """Names and values, one row for each entry, or for each of its tables; empty ones are left out."""
    table = within(measurements, "setup")
    rows = (row for name, value in table.items() for row in _rows(str(name), value)) if isinstance(table, dict) else ()
    return tuple((line(name), _cut(said)) for name, value in rows if (said := line(_said(value))))


def _rows(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield (name if len(value) == 1 else f"{name} {index}"), item
    elif name == "launch" and isinstance(value, list | tuple):
        yield name, " ".join(map(_said, value))
    else:
        yield name, value


def _said(value: Any) -> str:
    match value:
        case None:
            return ""
        case dict():
            return "; ".join(f"{key} {said}" for key, item in value.items() if (said := _said(item)))
        case list() | tuple():
            return ", ".join(filter(None, map(_said, value)))
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case _:
            return str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
