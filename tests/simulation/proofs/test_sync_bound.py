"""A number that is read in the middle of a step leaves the device without work until the host has launched more."""

from __future__ import annotations

import torch
from devices import Device, SimulatedDevice
from torch import nn
from torch.utils.data import TensorDataset

STEPS, READ = 20, 3
DATA = TensorDataset(torch.randn(4 * STEPS, 32), torch.randn(4 * STEPS, 8))


def train(device: Device, section: str) -> tuple[nn.Module, list]:
    torch.manual_seed(0)
    model, history = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 8)).to(device.name), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    device.shown("sync-bound", section).train(model, DATA, optimizer, history)
    return model, history


def test_the_host_waits_for_each_number(device: Device) -> None:
    waits = {section: device.waits(lambda section=section: train(device, section)) for section in ("Bad", "Good")}
    assert waits["Bad"] - waits["Good"] == READ * (STEPS - 1)


def test_the_loop_takes_a_sixth_longer_for_the_same_weights(simulated: SimulatedDevice) -> None:
    simulated.cost(kernel=10_000, launch=5_000)
    bad, good = (simulated.seconds(lambda section=section: train(simulated, section)) for section in ("Bad", "Good"))
    assert bad > good / (1 - 0.15)
    (left, _), (right, _) = train(simulated, "Bad"), train(simulated, "Good")
    assert all(torch.equal(*pair) for pair in zip(left.parameters(), right.parameters(), strict=True))
