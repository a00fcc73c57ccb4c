"""A batch for which the device has no room ends the job with torch's error; in parts it trains."""

from __future__ import annotations

import gc

import pytest
import torch
from devices import Device

ROOM = 26 * 2**20
SIZES = {4096: 128, 16384: 512, 32: 4, 256: 16}
"""The page's model and batch, for a device of so few bytes."""


def test_the_error_holds_the_figures(device: Device) -> None:
    device.limit(ROOM)
    with pytest.raises(torch.OutOfMemoryError, match=r"out of memory. Tried to allocate .* total capacity of"):
        device.shown("device-out-of-memory", "Bad", SIZES).train(1)


def test_the_same_batch_in_parts_fits_with_a_tenth_to_spare(device: Device) -> None:
    gc.collect()
    device.limit(ROOM)
    before = device.module.memory_allocated()
    device.module.reset_peak_memory_stats()
    device.shown("device-out-of-memory", "Good", SIZES).train(1)
    assert device.module.max_memory_allocated() - before < 0.9 * ROOM
