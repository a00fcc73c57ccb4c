"""What the page shows raises in a process of its own, and the other way to write it does not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchtriage.catalog import page, walk


@pytest.mark.parametrize(("section", "code"), [("Bad", 1), ("Good", 0)])
def test_the_message_is_that_of_bad_alone(section: str, code: int, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(page.read(walk.pages()["loader-workers-failed"]).snippet(section))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    assert bool(re.search(r"Can't pickle|Can't get local", done.stderr)) == (section == "Bad")
