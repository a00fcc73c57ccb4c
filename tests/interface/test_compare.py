from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from traced.jobs import Job, Plan, made
from traced.simulated import MS, US

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


@pytest.fixture
def left(tmp_path: Path) -> None:
    """Traces of a job before and after its data were brought along in time, and the log of another one."""
    slow = Plan(data=90 * MS)
    for name, plan, world, steps in (("before", slow, 2, 6), ("after", Plan(), 2, 6), ("alone", Plan(), 1, 9)):
        made(Job(name, plan, world, 1, frozenset(), frozenset(), steps=steps), tmp_path / name)
    (tmp_path / "job.log").write_text("epoch 1 loss 0.5\nepoch 2 loss 0.4\n")


def test_folders_of_traces_are_read_and_compared(call: Any, left: None) -> None:
    told = json.loads(call("compare", "before", "after", "--json").out)
    assert [(each["fault"], each["before"]["found"], each["after"]["found"]) for each in told["gone"]] == [
        ("input-bound", True, False)
    ] * len(told["gone"])
    assert told["gone"][0]["after"]["value"] < 0.05 < told["gone"][0]["before"]["value"]
    assert told["seconds"]["input"]["before"] > 0.05
    assert told["seconds"]["input"]["after"] == 0.0
    assert told["seconds"]["compute"]["before"] == pytest.approx(told["seconds"]["compute"]["after"], rel=0.05)
    assert told["ranks"] == {"before": 2.0, "after": 2.0}
    assert told["step_time"]["faster"] > 2
    assert call("compare", "before", "after").code == 0
    assert call("compare", "after", "before").code == 1


def test_a_saved_case_and_a_folder_are_compared_alike(call: Any, left: None, tmp_path: Path) -> None:
    (tmp_path / "before.json").write_text(call("read", "before", "--json", "--exit-zero").out)
    assert call("compare", "before.json", "after", "--json").out == call("compare", "before", "after", "--json").out


def test_other_numbers_of_ranks_and_steps_are_said(call: Any, left: None) -> None:
    said = call("compare", "before", "alone").out
    assert "ranks: 2 before, 1 after" in said
    assert "steps: 6 before, 9 after" in said


def test_what_is_of_different_kinds_is_refused(call: Any, left: None, cases: None) -> None:
    said = call("compare", "before", "job.log")
    assert said.code == 2
    assert "before is of the kind trace, after of the kind logs" in said.err
    assert call("compare", "ill", "after").code == 2
    assert call("compare", "empty", "after").code == 0


def test_what_is_not_there_is_named(call: Any, left: None) -> None:
    assert "gone.json" in call("compare", "gone.json", "after").err
    assert call("compare", "before", "gone").code in {2, 3}


@pytest.mark.parametrize("form", ["console", "html", "markdown"])
def test_every_form_names_what_changed(form: str, call: Any, left: None, tmp_path: Path) -> None:
    slower = replace_plan(tmp_path)
    said = call("compare", "after", slower, "--format", form).out
    assert "in the mean of a step of a rank" in said
    assert "larger" in said
    assert "ampere_bf16" in said


def replace_plan(folder: Path) -> str:
    """The same job whose kernels take twice as long."""
    made(Job("slower", Plan(kernel=800 * US), 2, 1, frozenset(), frozenset(), steps=6), folder / "slower")
    return "slower"


def test_of_two_checkpoints_the_mapping_of_their_keys_is_printed(call: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    state = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 2)).state_dict()
    torch.save({f"module.{key}": each for key, each in state.items()}, tmp_path / "a.pt")
    torch.save({"model": state, "epoch": 1}, tmp_path / "b.pt")
    said = call("compare", "a.pt", "b.pt")
    assert said.code == 0
    for row in ("the one has module. before 4 keys", "module.0.weight → 0.weight", "the epoch: only in b.pt"):
        assert row in " ".join(said.out.split())
    assert "Not comparable" not in said.out
    keys = json.loads(call("compare", "a.pt", "b.pt", "--json").out)["keys"]
    assert keys["renamed"] == {f"module.{key}": key for key in state}
    assert "## Keys" in call("compare", "a.pt", "b.pt", "--format", "markdown").out


def test_a_side_that_is_a_pipe_is_never_opened(call: Any, cases: None, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    said = call("compare", "ill", "pipe")
    assert said.code == 3
    assert "where: pipe" in said.err
