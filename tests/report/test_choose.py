from __future__ import annotations

import pytest

from torchtriage.core.case import Case
from torchtriage.core.fault import Persona
from torchtriage.report.choose import chosen

CLIP, NAME, ROOM = "example-clip", "example-name", "mixed-precision-and-optimization"


@pytest.mark.parametrize(
    ("persona", "select", "ignore", "left"),
    [
        (Persona.DEFAULT, (), (), [CLIP]),
        (Persona.PEDANTIC, (), (), [CLIP, NAME]),
        (Persona.PEDANTIC, (CLIP,), (), [CLIP]),
        (Persona.PEDANTIC, (), (CLIP,), [NAME]),
        (Persona.DEFAULT, (NAME,), (), [NAME]),
        (Persona.DEFAULT, (ROOM,), (), [CLIP]),
        (Persona.PEDANTIC, (ROOM,), (NAME,), [CLIP]),
        (Persona.PEDANTIC, (), (ROOM,), []),
        (Persona.PEDANTIC, ("performance-profiling",), (), []),
    ],
)
def test_a_reader_sees_the_findings_asked_for(
    persona: Persona, select: tuple[str, ...], ignore: tuple[str, ...], left: list[str], checked: Case
) -> None:
    case = chosen(checked, persona, select, ignore)
    assert [finding.fault.slug for finding in case.findings] == left
    assert case.outcomes == checked.outcomes
