"""A wrong address ends the process by a signal, and only faulthandler says where."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from torchtriage.catalog import page, walk


@pytest.mark.parametrize(("section", "code"), [("Bad", -signal.SIGSEGV), ("Good", 0)])
def test_a_wrong_address_ends_the_process(section: str, code: int, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(page.read(walk.pages()["native-crash"]).snippet(section))
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == code
    assert ("Fatal Python error: Segmentation fault" in done.stderr) == (section == "Bad")
