"""A checkpoint that is loaded without map_location comes to the device from which it was saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from devices import Device
from torch import nn, save

WIDTH = 1024


@pytest.mark.parametrize(("section", "copies"), [("Bad", 1), ("Good", 0)])
def test_what_is_restored_on_the_second_device_takes_memory_of_the_first(
    device: Device, two: None, group: None, tmp_path: Path, section: str, copies: int
) -> None:
    path = tmp_path / "model.pt"
    save(nn.Linear(WIDTH, WIDTH, bias=False).to(device.name).state_dict(), path)
    module = device.module
    module.reset_peak_memory_stats(0)
    before = module.memory_allocated(0)
    restored = device.shown("loads-to-saved-device", section).restore(nn.Linear(WIDTH, WIDTH, bias=False), str(path), 1)
    assert next(restored.parameters()).device.index == 1
    assert module.max_memory_allocated(0) - before == copies * WIDTH * WIDTH * 4
