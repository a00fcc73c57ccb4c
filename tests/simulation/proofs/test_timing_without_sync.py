"""A clock that is read while the device works measures how long launching took."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from devices import Device
from torch import nn


def measured(device: Device, section: str, width: int) -> float:
    """Seconds for each batch, as the page's code tells them of a product of WIDTH × WIDTH matrices."""
    shown = device.shown("timing-without-sync", section)
    shown.benchmark.__globals__["time"] = SimpleNamespace(perf_counter=device.clock)
    model, batch = nn.Linear(width, width, bias=False), torch.ones(width, width)
    shown.benchmark(model, batch, 2)
    return float(shown.benchmark(model, batch, 50))


def test_a_large_product_seems_as_fast_as_a_small_one_until_the_clock_waits_for_it(device: Device) -> None:
    device.cost(launch=10_000, flops_per_second=1e12)
    small, large = (8, 512) if device.name == "sim" else (8, 8192)
    assert measured(device, "Bad", large) < 3 * measured(device, "Bad", small)
    assert measured(device, "Good", large) > 20 * measured(device, "Good", small)
