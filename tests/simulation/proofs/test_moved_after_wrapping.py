"""DistributedDataParallel refuses a model that is not on its device yet."""

from __future__ import annotations

import pytest
from devices import Device
from torch import nn


def test_a_model_that_is_still_on_the_host_is_refused(device: Device, group: None) -> None:
    with pytest.raises(ValueError, match="device_ids and output_device arguments only work with"):
        device.shown("moved-after-wrapping", "Bad").setup(nn.Linear(2, 2))


def test_a_model_that_was_moved_first_is_wrapped(device: Device, group: None) -> None:
    wrapped = device.shown("moved-after-wrapping", "Good").setup(nn.Linear(2, 2))
    assert next(wrapped.parameters()).device.type == device.name
