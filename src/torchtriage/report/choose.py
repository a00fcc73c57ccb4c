"""Which findings of a case a reader asked to see."""

from __future__ import annotations

from collections.abc import Callable, Collection

from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.fault import Persona
from torchtriage.core.finding import Finding

Wanted = Callable[[Finding], bool]


def wanted(persona: Persona, select: Collection[str] = (), ignore: Collection[str] = ()) -> Wanted:
    """Whether a finding is to be shown. SELECT and IGNORE hold slugs of faults and names of specialists.

    What is selected by the slug of its fault is shown to every persona; an empty SELECT selects everything.
    """

    def is_wanted(finding: Finding) -> bool:
        names = {finding.fault.slug, finding.fault.specialist}
        seen = persona is Persona.PEDANTIC or finding.fault.persona is Persona.DEFAULT or finding.fault.slug in select
        return seen and not names & set(ignore) and (not select or bool(names & set(select)))

    return is_wanted


def chosen(case: Case, persona: Persona, select: Collection[str] = (), ignore: Collection[str] = ()) -> Case:
    """CASE with the findings that are `wanted` only."""
    return replace(case, findings=tuple(filter(wanted(persona, select, ignore), case.findings)))
