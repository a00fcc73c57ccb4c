"""What is kept of what happened."""

from __future__ import annotations

from pathlib import Path

import torch

from torchtriage import simulation
from torchtriage.simulation import Costs, Ledger, Simulator


def test_a_ledger_is_a_copy_and_outlives_a_reset(simulator: Simulator) -> None:
    x = torch.ones(4).to("sim")
    x.sum().item()
    ledger = simulator.ledger
    x.relu()
    simulator.reset()
    assert [each.name for each in ledger.kernels] == ["sum"]
    assert simulator.ledger.kernels == simulator.ledger.copies == ()
    assert simulator.now == simulator.busy_until() == 0


def test_a_ledger_is_written_and_read(simulator: Simulator, tmp_path: Path) -> None:
    simulation.start(devices=2, costs=Costs.free(kernel=5), frames=2)
    (torch.ones(4).to("sim:1") + 1).tolist()
    ledger = simulator.ledger
    assert ledger.kernels
    assert ledger.copies
    assert ledger.synchronisations
    assert ledger.allocations
    ledger.save(tmp_path / "ledger.json")
    assert Ledger.load(tmp_path / "ledger.json") == ledger


def test_the_oldest_records_make_room(simulator: Simulator) -> None:
    simulation.start(devices=2, costs=Costs.free(kernel=5), records=3)
    x = torch.ones(4).to("sim")
    simulator.reset()
    for _ in range(5):
        x.relu_()
    assert [each.start for each in simulator.ledger.kernels] == [10, 15, 20]
    assert simulator.ledger.dropped == 2
    simulation.start(devices=2)
