from __future__ import annotations

from pathlib import Path

import forked
import pytest

MODES = ("healthy", "missing", "operation")
PROGRAM = Path(__file__).parents[3] / "made" / "recorded.py"


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with the dumps of two ranks over gloo, by what happened."""
    folders = {mode: tmp_path_factory.mktemp(mode) for mode in MODES}
    server = forked.Server("torch", "torch.distributed", GLOO_SOCKET_IFNAME="lo")
    ranks = [
        server.start(str(PROGRAM), mode, str(rank), str(folder), place=folder)
        for mode, folder in folders.items()
        for rank in (0, 1)
    ]
    done = [rank.wait() for rank in ranks]
    server.close()
    assert [each.returncode for each in done] == [0] * len(ranks), "\n".join(each.stderr for each in done)
    return folders
