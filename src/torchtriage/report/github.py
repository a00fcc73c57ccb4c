"""Annotations for GitHub Actions: workflow commands, one for each fault of a file.

GitHub shows ten annotations of a kind for each step, so places of one fault must not use them up.
"""

from __future__ import annotations

from torchtriage.core.case import Case
from torchtriage.core.evidence import Place
from torchtriage.core.finding import Finding
from torchtriage.report import places
from torchtriage.report.text import inert, line

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render(case: Case) -> str:
    """The findings of CASE as annotations, in their order; "" when there are none."""
    return "".join(f"{_annotation(places.joined(group))}\n" for group in places.by_file(case.findings))


def _annotation(finding: Finding) -> str:
    fault, first = finding.fault, finding.evidence[0]
    properties = {**_where(first.place), "title": f"{fault.slug}: {line(fault.title)}"}
    message = f"{first.fact}\n{_others(finding)}{fault.remedies[0].title}: {fault.remedies[0].when}"
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[fault.severity.value]} {written}::{_data(message)}"


def _others(finding: Finding) -> str:
    """The other lines of the file, where an annotation is on the first only."""
    first, *others = dict.fromkeys(
        (item.place.cell, item.place.line) for item in finding.evidence if places.is_of_source(item)
    ) or [(None, None)]
    named = ", ".join(f"{number}" if cell == first[0] else f"{number} of cell {cell}" for cell, number in others)
    return f"Also in {'line' if len(others) == 1 else 'lines'} {named}.\n" if others else ""


def _where(place: Place) -> dict[str, str]:
    """A line within a notebook's cell is no line of the file, so it stays out."""
    if place.path is None:
        return {}
    known = {"file": place.path}
    if place.cell is None:
        spots = {"line": place.line, "endLine": place.end_line, "col": place.column}
        known |= {name: str(value) for name, value in spots.items() if value is not None}
    return known


def _data(text: str) -> str:
    return inert(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
