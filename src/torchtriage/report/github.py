"""Annotations for GitHub Actions: workflow commands, one for each finding."""

from __future__ import annotations

from torchtriage.core.case import Case
from torchtriage.core.evidence import Place
from torchtriage.core.finding import Finding
from torchtriage.report.text import inert, line

_COMMANDS = {"error": "error", "warning": "warning", "info": "notice"}


def render(case: Case) -> str:
    """The findings of CASE as annotations, in their order; "" when there are none."""
    return "".join(f"{_annotation(finding)}\n" for finding in case.findings)


def _annotation(finding: Finding) -> str:
    fault, first = finding.fault, finding.evidence[0]
    properties = {**_where(first.place), "title": f"{fault.slug}: {line(fault.title)}"}
    message = f"{first.fact}\n{fault.remedies[0].title}: {fault.remedies[0].when}"
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMANDS[fault.severity.value]} {written}::{_data(message)}"


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
