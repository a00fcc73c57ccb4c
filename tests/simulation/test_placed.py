"""Jobs whose tensors lie on several devices, and a model that is not on the current one."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from trainings import placed

from torchtriage.core.evidence import Inconclusive, Observed, Outcome
from torchtriage.examine.detector import perform
from torchtriage.examine.run.job import begin
from torchtriage.examine.run.job.accelerator import accelerator
from torchtriage.examine.run.measures.figures import measurements
from torchtriage.examine.run.reader.load import read
from torchtriage.examine.run.record import RunRecord
from torchtriage.simulation import Costs, Simulator
from torchtriage.triage import detectors, probes

FILE = Path(__file__).parent / "trainings" / "placed.py"
S = 1_000_000_000
LIMITS = ("run/sync-wait", "run/transfer-wait", "run/pinned-wait", "run/host-pace", "run/compute-share")


@pytest.mark.parametrize(
    ("name", "fails"),
    [
        ("halves on two devices", True),
        ("targets left behind", True),
        ("halves with a move", False),
        ("outputs brought back", False),
    ],
)
def test_a_device_mismatch_is_told_with_its_line(
    simulator: Simulator, python: str, tmp_path: Path, name: str, fails: bool
) -> None:
    command = [sys.executable, "-m", "torchtriage", "run", "--", python, str(FILE), name]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=300)
    (path,) = tmp_path.glob("torchtriage-runs/*/case.json")
    findings = json.loads(path.read_text())["findings"]
    assert [each["fault"] for each in findings] == ["device-mismatch"] * fails
    lines = [FILE.read_text().splitlines()[each["evidence"][0]["place"]["line"] - 1] for each in findings]
    assert all(line.endswith("# fails here") for line in lines)


Run = Callable[[nn.Module, str, str], RunRecord]


@pytest.fixture
def run(simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """What is recorded of 60 steps, while sim:0 is the current device."""
    jobs: list[Any] = []

    def put(model: nn.Module, home: str, target: str) -> RunRecord:
        jobs.append(begin(str(tmp_path), [str(room) for room in probes()]))
        simulator.reset()
        simulator.costs = Costs.free(launch=S // 1000, kernel=S // 500, kernels={"addmm": S // 4, "mm": S // 4})
        placed.train(model, 60, home=home, target=target)
        torch.accelerator.synchronize(0)
        torch.accelerator.synchronize(1)
        jobs[-1].leave("exit")
        assert not jobs[-1].lost
        return read(tmp_path)

    accelerator.forget()
    monkeypatch.setattr(accelerator, "clock", lambda: simulator.now)
    yield put
    for job in jobs:
        job.leave("test")
        job.tidy()
    accelerator.forget()


def outcomes(record: RunRecord) -> dict[str, Outcome]:
    return {each.detector: each for each in perform(detectors("readings"), record)}


@pytest.mark.parametrize("device", [0, 1])
def test_the_device_that_is_watched_is_that_of_the_model(simulator: Simulator, run: Run, device: int) -> None:
    home = f"sim:{device}"
    model = nn.Sequential(*[nn.Linear(16, 16) for _ in range(6)]).to(home)
    record = run(model, home, home)
    seen = outcomes(record)["run/compute-share"]
    assert isinstance(seen, Observed)
    kernels = [each for each in simulator.ledger.kernels if each.device == device]
    whole = max(each.end for each in kernels) - min(each.start for each in kernels)
    assert seen.evidence[0].value == pytest.approx(sum(each.end - each.start for each in kernels) / whole, rel=0.05)
    assert measurements(record)["memory"]["peak"] == torch.accelerator.max_memory_allocated(device)


def test_what_limits_a_model_on_two_devices_is_inconclusive(simulator: Simulator, run: Run) -> None:
    """The first half takes a hundredth of the second: its device has nothing to do most of the time."""
    record = run(placed.Moved("sim:0", "sim:1"), "sim:0", "sim:1")
    told = outcomes(record)
    for name in LIMITS:
        seen = told[name]
        assert isinstance(seen, Inconclusive)
        assert "2 devices (sim:0, sim:1)" in seen.why
