"""One line for each place: PATH:LINE:COLUMN: SEVERITY SLUG TITLE."""

from __future__ import annotations

from torchtriage.core.case import Case
from torchtriage.core.evidence import Place
from torchtriage.core.finding import Finding
from torchtriage.report.text import line


def render(case: Case) -> str:
    """The findings of CASE, in their order; "" when there are none."""
    return "".join(f"{_row(finding)}\n" for finding in case.findings)


def _row(finding: Finding) -> str:
    fault = finding.fault
    return f"{_spot(finding.evidence[0].place)}: {fault.severity.value} {fault.slug} {line(fault.title)}"


def _spot(place: Place) -> str:
    if place.path is None or place.line is None:
        return line(str(place))
    cell = f":cell {place.cell}" if place.cell is not None else ""
    return f"{line(place.path)}{cell}:{place.line}:{place.column or 1}"
