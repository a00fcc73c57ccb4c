from __future__ import annotations

import pytest
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Place
from torchtriage.core.fault import Fault, FaultClass, Persona, Sign
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


@pytest.mark.parametrize("path", ["test_layers.py", "tests/speed_test.py", "a/conftest.py"])
def test_what_a_test_wastes_is_shown_only_to_those_who_ask(fault: Fault, path: str) -> None:
    def shown(path: str, detector: str, kind: FaultClass, *, select: tuple[str, ...] = ()) -> bool:
        waste = replace(fault, slug="created-then-moved", kind=kind, signs=(Sign(detector),))
        finding = Finding(waste, some([Evidence(detector, Place(path, 3), "seen")], "evidence"))
        return bool(chosen(Case(findings=(finding,)), Persona.DEFAULT, select).findings)

    source = "source/created-then-moved"
    assert not shown(path, source, FaultClass.WASTE)
    assert shown(path, source, FaultClass.WASTE, select=("created-then-moved",))
    assert shown(path, source, FaultClass.WRONG)
    assert shown(path, "run/created-then-moved", FaultClass.WASTE)
    assert shown("test.py", source, FaultClass.WASTE)
