"""What a project sets for `check`: its table in pyproject.toml, a baseline, the torch that it is written for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from torchtriage.interface.cli.target import target

FAULT = "gradients-not-zeroed"


@pytest.fixture
def project(tmp_path: Path, faulty: Path) -> Path:
    """A project with the same fault in train.py and tests/train.py."""
    (tmp_path / "tests").mkdir()
    for name in ("train.py", "tests/train.py"):
        (tmp_path / name).write_text(faulty.read_text())
    faulty.unlink()
    (tmp_path / "sound.py").unlink(missing_ok=True)
    return tmp_path


def files(said: Any) -> list[str]:
    return [finding["evidence"][0]["place"]["path"] for finding in json.loads(said.out)["findings"]]


def settings(project: Path, text: str) -> None:
    (project / "pyproject.toml").write_text(f"[tool.torchtriage]\n{text}\n")


@pytest.mark.parametrize(
    ("text", "words", "left"),
    [
        ("", [], ["tests/train.py", "train.py"]),
        (f'ignore = ["{FAULT}"]', [], []),
        ('select = ["performance-profiling"]', [], []),
        ('select = ["performance-profiling"]', ["--select", FAULT], ["tests/train.py", "train.py"]),
        ('exclude = ["tests/"]', [], ["train.py"]),
        ('exclude = ["*.py"]', ["tests/train.py"], ["tests/train.py"]),
        (f'per-path = {{ "tests/**" = {{ ignore = ["{FAULT}"] }} }}', [], ["train.py"]),
        ('per-path = { "tests/**" = { select = ["performance-profiling"] } }', [], ["train.py"]),
    ],
)
def test_the_table_chooses_what_is_shown_and_the_command_line_outweighs_it(
    text: str, words: list[str], left: list[str], project: Path, call: Any
) -> None:
    settings(project, text)
    paths = words if words[:1] == ["tests/train.py"] else [".", *words]
    assert files(call("check", *paths, "--json")) == left


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('ignore = ["no-such-fault"]', "nothing is called 'no-such-fault'"),
        ('per-path = { "a" = { ignore = ["nope"] } }', "nothing is called 'nope'"),
        ("ignore = 3", "Expected `array`, got `int`"),
        ("ignored = []", "unknown field `ignored`"),
        ('persona = "strict"', "Invalid enum value 'strict'"),
        ("= 1", "cannot be read"),
        ('exclude = ["!"]', "is no pattern"),
        ('per-path = { "[z-a]" = {} }', "is no pattern"),
    ],
)
def test_a_table_that_cannot_be_meant_ends_with_2_and_names_its_file(
    text: str, said: str, project: Path, call: Any
) -> None:
    settings(project, text)
    ended = call("check", ".")
    assert ended.code == 2
    assert said in ended.err
    assert "pyproject.toml" in ended.err


def test_the_nearest_table_above_the_files_counts(project: Path, call: Any) -> None:
    settings(project, f'ignore = ["{FAULT}"]')
    (project / "tests/pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert call("check", "tests").code == 0
    (project / "tests/pyproject.toml").write_text("[tool.torchtriage]\n")
    assert call("check", "tests").code == 1
    assert call("check", "tests", "train.py").code == 0


def test_a_baseline_hides_what_it_knows_and_shows_what_is_new(project: Path, call: Any) -> None:
    assert call("check", "train.py", "--write-baseline", "known.json").code == 0
    again = call("check", ".", "--baseline", "known.json", "--json")
    assert files(again) == ["tests/train.py"]
    assert "1 known to the baseline" in again.err
    twice = (project / "train.py").read_text()
    (project / "train.py").write_text(f"# moved\n{twice}\n{twice.replace('train(', 'more(')}")
    assert files(call("check", "train.py", "--baseline", "known.json", "--json")) == ["train.py"]
    settings(project, 'baseline = "known.json"')
    assert files(call("check", "train.py", "--json")) == ["train.py"]


def test_a_baseline_knows_its_findings_however_the_code_is_named(
    project: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("check", ".", "--write-baseline", "known.json").code == 0
    assert call("check", str(project), "--baseline", str(project / "known.json")).code == 0
    monkeypatch.chdir(project / "tests")
    assert call("check", "train.py", "../train.py", "--baseline", "../known.json").code == 0


def test_the_same_findings_give_the_same_baseline(project: Path, call: Any) -> None:
    for name in ("one.json", "two.json"):
        call("check", ".", "--write-baseline", name)
    assert (project / "one.json").read_bytes() == (project / "two.json").read_bytes()


@pytest.mark.parametrize("content", [None, b"{}", b"[]", b"\xff", b'{"schema": 9, "findings": []}'])
def test_a_baseline_that_is_none_ends_with_2(content: bytes | None, project: Path, call: Any) -> None:
    if content is not None:
        (project / "known.json").write_bytes(content)
    said = call("check", ".", "--baseline", "known.json")
    assert said.code == 2
    assert "--write-baseline" in said.err


@pytest.mark.parametrize(
    ("name", "text", "oldest"),
    [
        ("setup.py", 'setup(name="x", install_requires=["numpy", "torch>=2.1,<2.3", "torchvision>=0.16"])', "2.1"),
        ("setup.py", "setup(install_requires=['torch'])", None),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch>=1.9\n", "1.9"),
        ("environment.yml", "dependencies:\n  - pytorch=1.13.1\n  - torchvision=0.14\n", "1.13.1"),
        ("environment-gpu.yaml", "dependencies:\n  - pip:\n    - torch==2.0.1\n", "2.0.1"),
    ],
)
def test_the_target_is_read_where_else_a_project_states_it(
    name: str, text: str, oldest: str | None, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    found = target(None, tmp_path, "")
    assert (str(found) if found is not None else None) == oldest


@pytest.mark.parametrize(
    ("requirements", "oldest"),
    [
        (["torch>=2.1"], "2.1"),
        (["numpy", "torch>=2.4,<3", "torchvision>=0.3"], "2.4"),
        (["torch==2.3.*"], "2.3"),
        (["torch~=2.2.1 ; python_version > '3.8'"], "2.2.1"),
        (["torch"], None),
        (["torch<3"], None),
        (["-r other.txt", "git+https://example.org/x", "torch >= 1.13  # old"], "1.13"),
        ([], None),
    ],
)
def test_the_target_is_the_oldest_torch_that_the_requirements_allow(
    requirements: list[str], oldest: str | None, tmp_path: Path
) -> None:
    (tmp_path / "requirements.txt").write_text("\n".join(requirements))
    assert str(target(None, tmp_path, "")) == str(oldest)


def test_the_target_is_read_from_the_project_and_outweighed_by_what_is_said(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\ndependencies = ["torch>=2.5"]\n')
    assert str(target(None, tmp_path, "")) == "2.5"
    assert str(target("2.13", tmp_path, "")) == "2.13"


def test_a_target_that_is_no_version_ends_with_2(project: Path, call: Any) -> None:
    said = call("check", ".", "--target-torch", "newest")
    assert (said.code, "--target-torch" in said.err) == (2, True)
    settings(project, 'target-torch = "newest"')
    said = call("check", ".")
    assert (said.code, "pyproject.toml" in said.err, "--target-torch" in said.err) == (2, True, False)


@pytest.mark.parametrize(("target_torch", "code"), [("2.3", 0), ("2.4", 1), ("2.13", 1)])
def test_a_fault_that_the_target_does_not_have_is_not_shown(
    target_torch: str, code: int, project: Path, call: Any
) -> None:
    (project / "old.py").write_text("import torch\n\nscaler = torch.cuda.amp.GradScaler()\n")
    assert call("check", "old.py", "--target-torch", target_torch, "--fail-on", "info").code == code
    (project / "requirements.txt").write_text(f"torch>={target_torch}\n")
    settings(project, "")
    assert call("check", "old.py", "--fail-on", "info").code == code


@pytest.mark.parametrize(
    "text",
    [
        "tool = 1\n",
        "project = 3\n",
        "[project]\ndependencies = 3\n",
        "[project]\ndependencies = [3, 'torch===abc']\n",
    ],
)
def test_a_pyproject_of_another_shape_sets_nothing(text: str, project: Path, call: Any) -> None:
    (project / "pyproject.toml").write_text(text)
    (project / "requirements-more.txt").mkdir()
    assert files(call("check", ".", "--json")) == ["tests/train.py", "train.py"]


def test_a_path_with_dots_belongs_to_where_it_leads(project: Path, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "here").mkdir()
    (project / "here/.git").mkdir()
    (project / "here/.gitignore").write_text("*.py\n")
    (project / "here/pyproject.toml").write_text(f'[tool.torchtriage]\nignore = ["{FAULT}"]\n')
    monkeypatch.chdir(project / "here")
    assert files(call("check", "../tests", "--json")) == ["../tests/train.py"]


def test_the_target_is_the_projects_wherever_one_stands(
    project: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "pyproject.toml").write_text('[project]\ndependencies = ["torch>=2.0"]\n')
    (project / "tests/old.py").write_text("import torch\n\nscaler = torch.cuda.amp.GradScaler()\n")
    assert call("check", "tests/old.py").code == 0
    monkeypatch.chdir(project / "tests")
    assert call("check", "old.py").code == 0
    monkeypatch.chdir("/")
    assert call("check", str(project / "tests/old.py")).code == 0


OLD = "import torch\n\nscaler = torch.cuda.amp.GradScaler()\n"  # deprecated from torch 2.4 on


@pytest.fixture
def two_projects(tmp_path: Path, project: Path) -> Path:
    """The projects old, which supports torch 2.0, and new, which needs 2.6, and a file of neither."""
    for name, bound in (("old", "2.0"), ("new", "2.6")):
        (tmp_path / name / "src").mkdir(parents=True)
        (tmp_path / name / "requirements.txt").write_text(f"torch>={bound}\n")
        (tmp_path / name / "src/scaled.py").write_text(OLD)
    (tmp_path / "scaled.py").write_text(OLD)
    return tmp_path


def test_the_target_of_a_file_is_that_of_its_own_project(two_projects: Path, call: Any) -> None:
    assert files(call("check", "old", "new", "--json")) == ["new/src/scaled.py"]
    assert files(call("check", "new", "scaled.py", "--json")) == ["new/src/scaled.py", "scaled.py"]
    (two_projects / "requirements.txt").write_text("torch>=2.1\n")
    assert files(call("check", "old", "new", "scaled.py", "--json")) == ["new/src/scaled.py"]
    (two_projects / "new/requirements.txt").write_text("numpy\n")
    assert files(call("check", "old", "new", "scaled.py", "--json")) == []


def test_a_target_that_is_set_outweighs_requirements_below_it(two_projects: Path, call: Any) -> None:
    assert files(call("check", "old", "new", "--target-torch", "2.0", "--json")) == []
    settings(two_projects, 'target-torch = "2.5"')
    assert files(call("check", "old", "new", "--json")) == ["new/src/scaled.py", "old/src/scaled.py"]
    settings(two_projects / "new", 'target-torch = "2.3"')
    assert files(call("check", "old", "new", "--json")) == ["old/src/scaled.py"]
    settings(two_projects / "new", 'target-torch = "newest"')
    said = call("check", "old", "new")
    assert (said.code, "new/pyproject.toml" in said.err) == (2, True)
    (two_projects / "new/pyproject.toml").write_text("= 1")
    assert files(call("check", "old", "new", "--json")) == ["new/src/scaled.py", "old/src/scaled.py"]


@pytest.mark.parametrize(
    ("baseline", "said"),
    [
        ("/dev/zero", "outside of the project"),
        ("../known.json", "outside of the project"),
        ("pipe", "a baseline that is no file"),
    ],
)
def test_a_baseline_of_the_settings_is_a_file_of_the_project(
    baseline: str, said: str, project: Path, call: Any
) -> None:
    os.mkfifo(project / "pipe")
    settings(project, f'baseline = "{baseline}"')
    done = call("check", "train.py")
    assert done.code == 2
    assert said in done.err
