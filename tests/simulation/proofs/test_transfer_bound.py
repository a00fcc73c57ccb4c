"""From pageable memory a batch is copied while the device does nothing else; from pinned memory it costs little."""

from __future__ import annotations

import pytest
import torch
from devices import Device, SimulatedDevice
from torch import nn
from torch.utils.data import TensorDataset

from torchtriage.simulation import Transfer

STEPS = 8
DATA = TensorDataset(torch.randn(256 * STEPS, 3, 16, 16), torch.randint(10, (256 * STEPS,)))

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create 4 worker processes")


def train(device: Device, section: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(768, 64), nn.ReLU(), nn.Linear(64, 10)).to(device.name)
    device.shown("transfer-bound", section).train(model, DATA, torch.optim.SGD(model.parameters(), 0.01))


def test_the_host_waits_for_each_copy_of_pageable_memory(device: Device) -> None:
    waits = {section: device.waits(lambda section=section: train(device, section)) for section in ("Bad", "Good")}
    assert waits["Bad"] - waits["Good"] == 2 * STEPS


def test_hiding_the_copies_makes_the_training_a_quarter_faster(simulated: SimulatedDevice) -> None:
    simulated.cost(kernel=10_000, launch=5_000, pageable=Transfer(20_000, 5e9), pinned=Transfer(10_000, 25e9))
    bad, good = (simulated.seconds(lambda section=section: train(simulated, section)) for section in ("Bad", "Good"))
    assert good < 0.8 * bad
