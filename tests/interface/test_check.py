from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

WAITING = """\
import torch
from torch import nn


def train(model: nn.Module, loader, optimizer: torch.optim.Optimizer):
    model.to("cuda")
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs.to("cuda")), targets.to("cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_a_fault_ends_with_1_and_a_sound_file_with_0(call: Any, faulty: Path, sound: Path) -> None:
    assert call("check", str(faulty)).code == 1
    assert call("check", str(faulty), "--exit-zero").code == 0
    said = call("check", str(sound))
    assert said.code == 0
    assert said.err == "0 findings in 1 file.\n"


def test_json_holds_findings_inconclusive_and_the_number_of_files(call: Any, faulty: Path, sound: Path) -> None:
    said = json.loads(call("check", "faulty.py", "sound.py", "--json").out)
    assert list(said) == ["schema", "findings", "inconclusive", "files"]
    assert said["files"] == 2
    assert [finding["fault"] for finding in said["findings"]] == ["gradients-not-zeroed"]


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("full", "Verdict\n"),
        ("concise", "faulty.py:9:"),
        ("github", "::error file=faulty.py,line=9"),
        ("sarif", '{\n  "$schema"'),
        ("json", '{\n  "schema": 1'),
    ],
)
def test_every_format_finds_the_same(form: str, start: str, call: Any, faulty: Path) -> None:
    said = call("check", "faulty.py", "--format", form)
    assert said.out.startswith(start)
    assert "gradients-not-zeroed" in said.out
    assert said.err == "1 finding in 1 file.\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--select", "gradients-not-zeroed"], 1),
        (["--select", "debugging-techniques"], 1),
        (["--select", "performance-profiling,debugging-techniques"], 1),
        (["--select", "performance-profiling"], 0),
        (["--ignore", "gradients-not-zeroed"], 0),
        (["--ignore", "performance-profiling", "--ignore", "debugging-techniques"], 0),
        (["--select", "no-such-fault"], 2),
        (["--format", "html"], 2),
        (["--persona", "strict"], 2),
    ],
)
def test_options_choose_what_counts(words: list[str], code: int, call: Any, faulty: Path) -> None:
    assert call("check", "faulty.py", *words).code == code


@pytest.mark.parametrize(
    ("file", "words", "code"),
    [
        ("advised.py", [], 0),
        ("advised.py", ["--persona", "pedantic"], 0),
        ("advised.py", ["--persona", "pedantic", "--fail-on", "info"], 1),
        ("advised.py", ["--persona", "pedantic", "--fail-on", "info", "--exit-zero"], 0),
        ("faulty.py", [], 1),
        ("faulty.py", ["--fail-on", "error"], 1),
        ("faulty.py", ["--exit-zero"], 0),
        ("wasteful.py", [], 1),
        ("wasteful.py", ["--fail-on", "warning"], 1),
        ("wasteful.py", ["--fail-on", "error"], 0),
        (".", ["--persona", "pedantic", "--fail-on", "error"], 1),
        ("faulty.py", ["--fail-on", "always"], 2),
    ],
)
def test_the_loudest_finding_decides_the_exit_code(
    file: str, words: list[str], code: int, call: Any, faulty: Path, tmp_path: Path
) -> None:
    shows = "        print(loss.item())\n"
    (tmp_path / "advised.py").write_text(WAITING + shows)
    (tmp_path / "wasteful.py").write_text(f"{WAITING}{shows}        torch.cuda.synchronize()\n")
    said = call("check", file, *words, "--format", "concise")
    assert said.code == code
    assert ("printed-every-step" in said.out) == ("pedantic" in words)


@pytest.mark.parametrize(("words", "code"), [(["nowhere.py"], 2), ([], 2), (["empty"], 3), (["broken.py"], 3)])
def test_what_cannot_be_examined_is_told_by_the_code(words: list[str], code: int, call: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.py").write_text("import torch\nx = (\n")
    said = call("check", *words)
    assert said.code == code
    assert "Traceback" not in said.err


def test_a_broken_file_does_not_hide_the_others(call: Any, faulty: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import torch\nx = (\n")
    said = call("check", ".", "--format", "concise")
    assert said.code == 1
    assert "faulty.py" in said.out
    assert "not seen by" in said.err
    assert "broken.py" in said.err
