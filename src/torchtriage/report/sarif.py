"""SARIF 2.1.0: the findings as a code-scanning service takes them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from torchtriage.catalog.page import read
from torchtriage.catalog.walk import pages
from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Inconclusive, Place
from torchtriage.core.fault import Fault
from torchtriage.core.finding import Finding
from torchtriage.core.plain import plain, written
from torchtriage.report.figure import measured
from torchtriage.report.places import by_file
from torchtriage.report.text import inert, line, sentence

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS = {"error": "error", "warning": "warning", "info": "note"}


def render(case: Case) -> str:
    """CASE as one SARIF run: a rule for each fault, a result for each place, a notification for what was not seen.

    The results of one fault in one file stand together.
    """
    faults = {finding.fault.slug: finding.fault for finding in case.findings}
    order = {slug: index for index, slug in enumerate(sorted(faults))}
    run = {
        "tool": {
            "driver": {
                "name": "torchtriage",
                "version": version("torchtriage"),
                "semanticVersion": version("torchtriage"),
                "rules": [_rule(faults[slug]) for slug in order],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [_notification(item) for item in case.inconclusive],
            }
        ],
        "results": [
            _result(finding, order[finding.fault.slug]) for group in by_file(case.findings) for finding in group
        ],
    }
    return written({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(fault: Fault) -> dict[str, Any]:
    what = _what_happens(fault.slug)
    remedies = [f"{remedy.order}. {sentence(remedy.title)} {sentence(remedy.when)}" for remedy in fault.remedies]
    return {
        "id": fault.slug,
        "name": fault.slug,
        "shortDescription": {"text": line(fault.title)},
        "fullDescription": {"text": line(what or fault.title)},
        "help": {
            "text": inert("\n".join([what or fault.title, "", "Remedies:", *remedies])),
            "markdown": inert("\n".join([what or fault.title, "", "**Remedies**", "", *remedies])),
        },
        "defaultConfiguration": {"level": _LEVELS[fault.severity.value]},
        "properties": {
            "class": fault.kind.value,
            "confidence": fault.confidence.value,
            "persona": fault.persona.value,
            "precision": "high" if fault.confidence.value == "high" else "medium",
            "tags": ["pytorch", line(fault.specialist)],
        },
    }


def _what_happens(slug: str) -> str:
    """From the fault's page; "" for a fault of a case that this version has no page for."""
    known = pages()
    return read(known[slug]).sections["What happens"].strip() if slug in known else ""


def _result(finding: Finding, index: int) -> dict[str, Any]:
    fault, (first, *others) = finding.fault, finding.evidence
    related = [{"id": n, **_location(item), "message": {"text": _said(item)}} for n, item in enumerate(others, start=1)]
    return {
        "ruleId": fault.slug,
        "ruleIndex": index,
        "level": _LEVELS[fault.severity.value],
        "message": {"text": f"{line(fault.title)}: {_said(first)}"},
        "locations": [_location(first)] if _location(first) else [],
        **({"relatedLocations": related} if related else {}),
        "partialFingerprints": {"torchtriage/v1": finding.fingerprint},
        "properties": {
            "confidence": fault.confidence.value,
            "persona": fault.persona.value,
            **dict(_figures(first)),
        },
    }


def _said(item: Evidence) -> str:
    """The fact, and what of its place a SARIF region cannot hold."""
    place, measure = item.place, line(measured(item))
    outside = place.path is None or place.cell is not None or place.step is not None or place.rank is not None
    where = f" at {line(str(place))}" if outside else ""
    return f"{line(item.fact)}{where}{f' ({measure})' if measure else ''}"


def _figures(item: Evidence) -> Iterator[tuple[str, Any]]:
    for name in ("value", "unit", "spread"):
        if (value := getattr(item, name)) is not None:
            yield name, plain(value)
    for name in ("rank", "step", "cell"):
        if (number := getattr(item.place, name)) is not None:
            yield name, number


def _location(item: Evidence) -> dict[str, Any]:
    place = item.place
    found: dict[str, Any] = {}
    if place.path is not None:
        found["physicalLocation"] = {"artifactLocation": {"uri": _uri(place.path)}, **_region(place)}
    if place.module is not None:
        found["logicalLocations"] = [{"fullyQualifiedName": line(place.module), "kind": "module"}]
    return found


def _region(place: Place) -> dict[str, Any]:
    """A line within a notebook's cell is no line of the file, so it stays out."""
    if place.line is None or place.cell is not None:
        return {}
    spots = {"startLine": place.line, "startColumn": place.column, "endLine": place.end_line}
    return {"region": {name: value for name, value in spots.items() if value is not None}}


def _uri(path: str) -> str:
    pure = PurePath(path)
    written = quote(pure.as_posix().encode("utf-8", "surrogatepass"))
    return f"file://{written}" if pure.is_absolute() else written


def _notification(item: Inconclusive) -> dict[str, Any]:
    return {
        "descriptor": {"id": line(item.detector)},
        "level": "note",
        "message": {"text": f"{sentence(item.why)} {sentence(item.unblock)}"},
    }
