"""`torchtriage experiment --accelerator sim`: what is tried of a script for a GPU where there is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TRAINING = """
import torch
from torch import nn
torch.manual_seed(0)
model = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 2, 64, batch_first=True), 4).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(12):
    optimizer.zero_grad()
    inputs = torch.randn(16, 32, 32).cuda()
    nn.functional.mse_loss(model(inputs), inputs).backward()
    optimizer.step()
"""


@pytest.fixture
def rehearsed(library_cache: None, tmp_path: Path) -> Any:
    """What an experiment with these words says of the training."""
    from torchtriage.simulation import build

    if (lacking := build.obstacles()) and not build.is_built():
        pytest.skip(f"the simulated device cannot be compiled here, for lack of {', '.join(lacking)}")

    def run(*words: str) -> dict[str, Any]:
        (tmp_path / "train.py").write_text(TRAINING)
        command = [sys.executable, "-m", "torchtriage", "experiment", *words, "--accelerator", "sim", "--json"]
        ended = subprocess.run(
            [*command, "--out", "out", "--", "train.py"],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode in (0, 1), ended.stderr
        told: dict[str, Any] = json.loads(ended.stdout)
        return told

    return run


def test_with_which_change_a_job_fits_is_told(rehearsed: Any) -> None:
    changes = ("--try", "checkpointing", "--try", "foreach", "--try", "batch-size=0.5")
    told = rehearsed("--recipe", "memory", *changes, "--card", "4MiB")
    (finding,) = [each for each in told["findings"] if each["fault"] == "device-out-of-memory"]
    fact = finding["evidence"][0]["fact"]
    assert fact.startswith("the job runs out of memory in its first step (CUDA out of memory. Tried to allocate")
    assert "it runs with activation checkpointing (peak " in fact
    memory = told["measurements"]["experiment"]["memory"]
    assert memory["unchanged"]["full"]
    assert [each["name"] for each in memory["arms"]] == ["activation checkpointing", "one parameter at a time"]
    assert memory["arms"][0]["peak"] < 4 * 2**20
    assert memory["arms"][1]["full"]
    assert memory["without_result"][0]["why"] == "it builds no DataLoader whose batches can have another size"
