"""Which findings of a case a reader asked to see."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.evidence import is_test
from torchtriage.core.fault import FaultClass, Persona, Severity
from torchtriage.core.finding import Finding

Wanted = Callable[[Finding], bool]


def wanted(persona: Persona, select: Collection[str] = (), ignore: Collection[str] = ()) -> Wanted:
    """Whether a finding is to be shown. SELECT and IGNORE hold slugs of faults and names of specialists.

    What is selected by the slug of its fault is shown to every persona, and so is what source only suspects and a run
    has measured, above advice; an empty SELECT selects everything. What a test wastes is shown as what costs little is.
    """

    def is_wanted(finding: Finding) -> bool:
        names = {finding.fault.slug, finding.fault.specialist}
        is_for_all = finding.fault.persona is Persona.DEFAULT and not _is_waste_of_test(finding)
        seen = persona is Persona.PEDANTIC or is_for_all or finding.fault.slug in select
        seen = seen or _measured(finding)
        return seen and not names & set(ignore) and (not select or bool(names & set(select)))

    return is_wanted


def _is_waste_of_test(finding: Finding) -> bool:
    """Whether FINDING says that a test wastes time: tests compare two ways, or time them, and train nothing."""
    is_waste = finding.fault.kind is FaultClass.WASTE
    in_tests = (item.detector.startswith("source/") and is_test(item.place.path or "") for item in finding.evidence)
    return is_waste and all(in_tests)


def _measured(finding: Finding) -> bool:
    suspected = any(sign.detector.startswith("source/") for sign in finding.fault.signs)
    seen = any(not item.detector.startswith("source/") for item in finding.evidence)
    return suspected and seen and finding.fault.severity is not Severity.INFO


def chosen(case: Case, persona: Persona, select: Collection[str] = (), ignore: Collection[str] = ()) -> Case:
    """CASE with the findings that are `wanted` only."""
    return replace(case, findings=tuple(filter(wanted(persona, select, ignore), case.findings)))
