"""A blocking copy waits for its end although the memory is pinned."""

from __future__ import annotations

import torch
from devices import Device, SimulatedDevice
from torch import nn
from torch.utils.data import TensorDataset

from torchtriage.simulation import Transfer

STEPS = 12
DATA = TensorDataset(torch.randn(4 * STEPS, 4096), torch.randn(4 * STEPS, 8))


def train(device: Device, section: str) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4096, 8).to(device.name)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    device.shown("pin-memory-blocking", section).train(model, DATA, optimizer, device.name)


def test_the_host_waits_for_each_copy_that_blocks(device: Device) -> None:
    waits = {section: device.waits(lambda section=section: train(device, section)) for section in ("Bad", "Good")}
    assert waits["Bad"] - waits["Good"] == STEPS


def test_without_the_wait_launching_runs_beside_the_copy(simulated: SimulatedDevice) -> None:
    simulated.cost(kernel=10_000, launch=5_000, pinned=Transfer(10_000, 1e9))
    bad, good = (simulated.seconds(lambda section=section: train(simulated, section)) for section in ("Bad", "Good"))
    assert good < bad
