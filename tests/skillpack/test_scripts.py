"""The pack's programs: each runs as it is, and says what it is."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from forked import Server

from torchtriage.interface.skillpack.pack import skills

SCRIPTS = [script for folder in skills().values() for script in sorted(folder.glob("scripts/*.py"))]


def name(script: Path) -> str:
    return f"{script.parent.parent.name}/{script.name}"


@pytest.fixture(scope="module")
def started() -> Iterator[Callable[[Path, Path], subprocess.CompletedProcess[str]]]:
    """Runs a program in a folder: the first as a process of its own, the others in forks.

    A fork has no more of torch than a program that begins with `import torch`; the first optimizer brings the rest.
    """
    plain, training = Server("torch"), Server("torch", "torch._dynamo")

    def run(script: Path, place: Path) -> subprocess.CompletedProcess[str]:
        if script == SCRIPTS[0]:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            return subprocess.run(
                [sys.executable, script], cwd=place, env=environment, capture_output=True, text=True, timeout=120
            )
        server = training if "torch.optim." in script.read_text(encoding="utf-8") else plain
        return server.run(str(script), place=place)

    yield run
    plain.close()
    training.close()


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_a_program_runs_without_arguments_and_prints_what_it_found(
    script: Path, started: Callable[[Path, Path], subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = started(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_a_program_says_what_it_is_and_takes_arguments(script: Path) -> None:
    code = script.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(code))
    assert "ArgumentParser" in code
