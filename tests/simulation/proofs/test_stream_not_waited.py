"""A forward pass begins before a copy of another stream has ended, unless its stream waits."""

from __future__ import annotations

import pytest
import torch
from devices import SimulatedDevice
from torch import nn
from torch.utils.data import TensorDataset

from torchtriage.simulation import Transfer

STEPS = 6
DATA = TensorDataset(torch.randn(4 * STEPS, 64), torch.randn(4 * STEPS, 8))

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create 2 worker processes")


@pytest.mark.parametrize(("section", "early"), [("Bad", STEPS), ("Good", 0)])
def test_a_pass_computes_with_a_batch_that_has_not_come_unless_its_stream_waits(
    simulated: SimulatedDevice, section: str, early: int
) -> None:
    torch.manual_seed(0)
    model = nn.Linear(64, 8).to("sim")
    simulated.cost(kernel=1_000, pinned=Transfer(1_000_000, 1e9))
    simulated.simulator.reset()
    train = simulated.shown("stream-not-waited", section).train
    train(model, DATA, torch.optim.SGD(model.parameters(), 0.01))
    ledger = simulated.simulator.ledger
    batches = [each for each in ledger.copies if each.kind == "host-to-device" and each.bytes == 4 * 64 * 4]
    passes = [each for each in ledger.kernels if each.name == "addmm"]
    assert len(batches) == len(passes) == STEPS
    assert sum(kernel.start < copy.end for kernel, copy in zip(passes, batches, strict=True)) == early
