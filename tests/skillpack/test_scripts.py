"""The pack's programs: each runs as it is, and says what it is."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from torchtriage.interface.skillpack.pack import skills

SCRIPTS = [script for folder in skills().values() for script in sorted(folder.glob("scripts/*.py"))]


def name(script: Path) -> str:
    return f"{script.parent.parent.name}/{script.name}"


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_a_program_runs_without_arguments_and_prints_what_it_found(script: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("script", SCRIPTS, ids=name)
def test_a_program_says_what_it_is_and_takes_arguments(script: Path) -> None:
    code = script.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(code))
    assert "ArgumentParser" in code
