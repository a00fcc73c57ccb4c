"""Emptying the allocator's cache asks the driver for the same memory in each step, and saves none."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from devices import Device
from torch import nn

STEPS = 10


@pytest.fixture
def train(device: Device) -> Callable[[str], None]:
    model = nn.Sequential(nn.Linear(128, 2048), nn.ReLU(), nn.Linear(2048, 128)).to(device.name)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    batches = [(torch.randn(256, 128), torch.randn(256, 128))] * STEPS
    return lambda section: device.shown("empty-cache-in-loop", section).train(model, batches, optimizer)


def asked(device: Device) -> int:
    """How often the driver was asked for memory."""
    return int(device.module.memory_stats()["num_device_alloc"])


def test_each_step_asks_the_driver_anew(device: Device, train: Callable[[str], None]) -> None:
    train("Good")
    before = asked(device)
    train("Good")
    assert asked(device) == before
    train("Bad")
    assert asked(device) >= before + STEPS - 1


def test_each_step_waits_for_the_device_and_takes_longer(device: Device, train: Callable[[str], None]) -> None:
    train("Good")
    device.cost(kernel=20_000, launch=5_000, segment=100_000)
    assert device.seconds(lambda: train("Bad")) > 1.2 * device.seconds(lambda: train("Good"))


def test_the_peak_is_the_same(device: Device, train: Callable[[str], None]) -> None:
    peaks = {}
    for section in ("Good", "Bad"):
        device.module.reset_peak_memory_stats()
        train(section)
        peaks[section] = device.module.max_memory_allocated()
    assert peaks["Bad"] == peaks["Good"]
