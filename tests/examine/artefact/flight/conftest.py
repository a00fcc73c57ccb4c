from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODES = ("healthy", "missing", "operation")
PROGRAM = Path(__file__).parents[3] / "made" / "recorded.py"


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with the dumps of two ranks over gloo, by what happened."""
    folders = {mode: tmp_path_factory.mktemp(mode) for mode in MODES}
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    ranks = [
        subprocess.Popen([sys.executable, PROGRAM, mode, str(rank), folder], env=environment)
        for mode, folder in folders.items()
        for rank in (0, 1)
    ]
    assert [rank.wait() for rank in ranks] == [0] * len(ranks)
    return folders
