from __future__ import annotations

import pytest
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Place
from torchtriage.core.fault import FaultClass, Persona, Sign
from torchtriage.core.finding import Finding
from torchtriage.core.some import some
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


@pytest.mark.parametrize(
    ("kind", "source", "by", "is_shown"),
    [
        (FaultClass.WRONG, True, "run/example", True),
        (FaultClass.WRONG, True, "source/example", False),
        (FaultClass.WRONG, False, "run/example", False),
        (FaultClass.ADVICE, True, "run/example", False),
    ],
    ids=["measured", "suspected only", "for pedants by intention", "advice"],
)
def test_what_source_only_suspects_is_shown_to_all_when_a_run_has_measured_it(
    kind: FaultClass, source: bool, by: str, is_shown: bool, checked: Case
) -> None:
    signs = [Sign("run/example"), *([Sign("source/example")] if source else [])]
    fault = replace(checked.findings[0].fault, kind=kind, persona=Persona.PEDANTIC, signs=some(signs, "signs"))
    finding = Finding(fault, some([Evidence(by, Place("train.py", 3), "seen")], "evidence"))
    assert bool(chosen(Case(findings=(finding,)), Persona.DEFAULT).findings) == is_shown
