from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from torchtriage.core.case import Case
from torchtriage.core.evidence import Evidence, Inconclusive, Observed
from torchtriage.core.fault import Fault, Persona
from torchtriage.core.finding import Finding

RUN = {"steps": 50, "step_time": {"median": 0.2, "interval": [0.19, 0.21]}}


@pytest.fixture
def cases(tmp_path: Path, fault: Fault, seen: Callable[..., Evidence]) -> None:
    """Cases in files and in a run's folder, by what they hold."""
    clips = Finding(fault, (seen("run/clips", value=0.6, unit="of the steps", spread=(0.5, 0.7)),))
    fewer = Finding(fault, (seen("run/clips", value=0.4, unit="of the steps", spread=(0.35, 0.45)),))
    looked = (Observed("run/clips"),)
    hinted = replace(clips, fault=replace(fault, persona=Persona.PEDANTIC, signs=fault.signs[1:]))
    made = {
        "ill": Case(findings=(clips,), outcomes=looked, measurements=RUN),
        "better": Case(findings=(fewer,), outcomes=looked, measurements=RUN),
        "sound": Case(outcomes=looked, measurements=RUN),
        "blind": Case(outcomes=(Inconclusive("run/clips", "no scaler was seen", "Use one."),), measurements=RUN),
        "hinted": Case(findings=(hinted,), outcomes=looked, measurements=RUN),
        "empty": Case(),
    }
    for name, case in made.items():
        (tmp_path / name).mkdir()
        case.save(tmp_path / name / "case.json")


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("ill", "sound", 0),
        ("ill", "better", 1),
        ("ill", "ill", 1),
        ("sound", "ill", 1),
        ("sound", "sound", 0),
        ("ill", "blind", 3),  # it may still be there
        ("ill", "empty", 3),  # nothing was examined
        ("sound", "hinted", 0),  # advice is for those who ask for it
    ],
)
def test_the_exit_code_says_whether_something_is_left(
    before: str, after: str, code: int, call: Any, cases: None
) -> None:
    assert call("compare", before, f"{after}/case.json").code == code
    assert call("compare", before, after, "--exit-zero").code == 0


def test_advice_is_compared_when_it_is_asked_for(call: Any, cases: None) -> None:
    assert call("compare", "sound", "hinted", "--persona", "pedantic").code == 1


@pytest.mark.parametrize(
    ("form", "begins"),
    [
        ("console", "Verdict\n  1 finding: 1 smaller. "),
        ("markdown", "## Verdict\n"),
        ("json", "{\n"),
        ("html", "<!doctype html>\n"),
    ],
)
def test_a_comparison_is_told_in_every_form_on_stdout(form: str, begins: str, call: Any, cases: None) -> None:
    said = call("compare", "ill", "better", "--format", form)
    assert said.out.startswith(begins)
    assert said.err == ""


def test_json_is_the_shape_of_the_interface(call: Any, cases: None) -> None:
    said = json.loads(call("compare", "ill", "better", "--json").out)
    assert said["schema"] == 1
    assert [len(said[name]) for name in ("gone", "smaller", "same", "new")] == [0, 1, 0, 0]


@pytest.mark.parametrize(("words", "code"), [(["ill", "nowhere"], 3), (["ill"], 2), (["ill", "."], 3)])
def test_a_case_that_is_not_there_is_named(words: list[str], code: int, call: Any, cases: None) -> None:
    said = call("compare", *words)
    assert said.code == code
    assert said.out == ""
    assert said.err
