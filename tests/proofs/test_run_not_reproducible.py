"""Two runs of Bad end with other weights; two runs of Good end with the same ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from torchtriage.catalog import page, walk


def weights(section: str) -> str:
    """What a new process that runs the section of the page prints at its end."""
    code = page.read(Path(walk.pages()["run-not-reproducible"])).snippet(section)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_two_runs_with_a_drawn_seed_differ_and_two_with_a_fixed_one_are_equal() -> None:
    assert weights("Bad") != weights("Bad")
    assert weights("Good") == weights("Good") != ""
