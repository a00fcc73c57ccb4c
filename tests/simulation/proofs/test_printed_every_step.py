"""A value that is printed in every step makes the host wait once more, and costs what launching the next step takes."""

from __future__ import annotations

import torch
from devices import Device, SimulatedDevice
from torch import nn
from torch.utils.data import TensorDataset

STEPS = 20
DATA = TensorDataset(torch.randn(4 * STEPS, 32), torch.randn(4 * STEPS, 8))


def train(device: Device, section: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8))
    device.shown("printed-every-step", section).train(model, DATA, torch.optim.SGD(model.parameters(), 0.01))


def test_the_host_waits_once_a_step(device: Device) -> None:
    waits = {section: device.waits(lambda section=section: train(device, section)) for section in ("Bad", "Good")}
    assert waits["Bad"] - waits["Good"] == STEPS - 1


def test_a_step_of_long_kernels_loses_less_of_its_time(simulated: SimulatedDevice) -> None:
    def lost(kernel: int) -> float:
        simulated.cost(kernel=kernel, launch=5_000)
        bad, good = (
            simulated.seconds(lambda section=section: train(simulated, section)) for section in ("Bad", "Good")
        )
        return (bad - good) / bad

    assert 0 < lost(1_000_000) < 0.01 < lost(10_000) < 0.15
