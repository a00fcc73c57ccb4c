"""Two ranks that train together."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from torchtriage.simulation import Simulator

SCRIPT = Path(__file__).parent / "trainings" / "ranks.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ranks")


def run(device: str, folder: Path, python: str) -> list[dict[str, Any]]:
    if not (folder / f"{device}-0.json").exists():
        own = os.environ | {"PYTHONWARNINGS": "error::UserWarning"}
        ranks = [
            subprocess.Popen(
                [python, str(SCRIPT), device, str(rank), str(folder)],
                env=own,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        said = [rank.communicate(timeout=240)[1] for rank in ranks]
        assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(said)
    return [json.loads((folder / f"{device}-{rank}.json").read_text()) for rank in range(2)]


def test_a_distributed_training_has_the_numbers_of_gloo(simulator: Simulator, folder: Path, python: str) -> None:
    ours, theirs = run("sim", folder, python), run("cpu", folder, python)
    for part in ("losses", "weights"):
        assert [rank[part] for rank in ours] == [rank[part] for rank in theirs]
    assert ours[0]["weights"] == ours[1]["weights"]
    assert ours[0]["losses"] != ours[1]["losses"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sum", [[1, 1], [1, 1]]),
        ("mean", [[0.5, 0.5], [0.5, 0.5]]),
        ("max", [[1, 1], [1, 1]]),
        ("gathered", [[0, 0, 1, 1], [0, 0, 1, 1]]),
        ("broadcast", [[1, 1], [1, 1]]),
        ("exchanged", [[0, 10], [1, 11]]),
        ("scattered", [[0], [2]]),
        ("sent", [[1, 1], [1, 1]]),
        ("later", [[2, 2], [2, 2]]),
        ("host", [[3], [3]]),
        ("objects", [[{"rank": 0}, {"rank": 1}]] * 2),
    ],
)
def test_a_collective_gives_each_rank_its_numbers(
    simulator: Simulator, folder: Path, python: str, name: str, expected: list[object]
) -> None:
    assert [rank["collectives"][name] for rank in run("sim", folder, python)] == expected


def test_a_late_rank_holds_up_the_devices_of_the_others_and_not_their_hosts(
    simulator: Simulator, folder: Path, python: str
) -> None:
    prompt, late = run("sim", folder, python)
    # fill_ is launched at 0 or 70,000 and takes 1,000; the collective costs 5,000 from where both have got to.
    assert prompt["late"] == [["allreduce", 1_010, 71_010, 76_010]]
    assert late["late"] == [["allreduce", 71_010, 71_010, 76_010]]
    assert (prompt["host"], late["host"]) == (20, 70_020)
    assert prompt["after"] == late["after"] == [76_010, 77_010]
