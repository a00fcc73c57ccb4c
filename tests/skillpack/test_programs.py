"""What the programs of two skills tell apart: states that resume and those that do not, Functions that hold and do not."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
import torch

from torchtriage.catalog.page import read
from torchtriage.catalog.walk import pages
from torchtriage.interface.skillpack.pack import skills

CHECKPOINTS = skills()["checkpointing-and-reproducibility"] / "scripts"
GRADIENTS = skills()["custom-autograd-functions"] / "scripts"


def run(program: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of PROGRAM."""
    monkeypatch.setattr(sys, "argv", [program.name, *arguments])
    try:
        runpy.run_path(str(program), run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_a_complete_resume_is_equal_in_every_bit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], torch_as_it_was: None
) -> None:
    assert run(CHECKPOINTS / "resume_check.py", monkeypatch) == 0
    assert capsys.readouterr().out.startswith("equal")


@pytest.mark.parametrize("part", ["model", "optimizer", "scheduler", "loader", "torch", "python", "epoch"])
def test_each_part_that_is_forgotten_changes_the_weights(
    part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], torch_as_it_was: None
) -> None:
    assert run(CHECKPOINTS / "resume_check.py", monkeypatch, "--forget", part) == 0
    assert "differs: model.0.weight" in capsys.readouterr().out


def test_two_files_are_compared_bit_by_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one.pt", tmp_path / "two.pt"
    torch.save({"model": {"weight": torch.ones(3)}, "epoch": 1}, one)
    torch.save({"model": {"weight": torch.tensor([1, 1, 1 + 1e-6])}, "epoch": 1}, two)
    program = CHECKPOINTS / "compare_checkpoints.py"
    assert run(program, monkeypatch, str(one), str(one)) == 0
    assert capsys.readouterr().out == "0 of 2 entries differ\n"
    assert run(program, monkeypatch, str(one), str(two)) == 1
    assert "model.weight: 1 of 3 numbers, by 9.54e-07 at most" in capsys.readouterr().out


@pytest.mark.parametrize(
    "case",
    [
        ("dirty-not-marked", "Scale", ("3x4", "--constants", "3"), "inputs left as they are"),
        ("grad-output-edited", "Rectify", ("3x4",), "grad_output left as it is"),
        ("tensor-on-ctx", "Exponential", ("3x4",), "nothing held after backward"),
        ("autocast-not-handled", "Project", ("3x4", "2x4"), "autocast to bfloat16"),
        ("not-once-differentiable", "Cube", ("3x4",), "second derivative"),
    ],
    ids=lambda case: case[0],
)
def test_a_page_s_wrong_function_fails_its_check_and_the_right_one_does_not(
    case: tuple[str, str, tuple[str, ...], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    torch_as_it_was: None,
) -> None:
    slug, name, arguments, failing = case
    said = {}
    for title in ("Bad", "Good"):
        file = tmp_path / f"{title}.py"
        file.write_text(read(pages()[slug]).snippet(title), encoding="utf-8")
        run(GRADIENTS / "check_function.py", monkeypatch, "--file", str(file), "--name", name, "--shapes", *arguments)
        said[title] = [line for line in capsys.readouterr().out.splitlines() if failing in line]
    assert [line.split()[0] for line in said["Bad"]] == ["FAILS"]
    assert [line.split()[0] for line in said["Good"]] == ["ok"]


def test_the_error_of_an_approximate_gradient_is_told_with_the_one_expected(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(GRADIENTS / "approximate_gradient.py", monkeypatch) == 0
    said = capsys.readouterr().out
    assert "within 1e-08 at h 6e-06" in said
    assert "NOT" not in said
