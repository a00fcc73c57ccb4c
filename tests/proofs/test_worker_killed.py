"""A worker that is killed cannot say why; the training process only says by what."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torchtriage.catalog import page, walk


@pytest.mark.parametrize(("section", "code"), [("Bad", 1), ("Good", 0)])
def test_a_killed_worker_ends_the_training_with_its_signal(section: str, code: int, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(page.read(walk.pages()["worker-killed"]).snippet(section))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == code
    assert ("is killed by signal: Killed" in done.stderr) == (section == "Bad")
