"""A target that stays on the host ends the first step on an accelerator, and nothing on a CPU."""

from __future__ import annotations

import pytest
import torch
from devices import Device
from torch import nn
from torch.utils.data import TensorDataset

DATA = TensorDataset(torch.randn(64, 8), torch.randint(3, (64,)))


def test_the_first_loss_of_two_devices_is_refused_in_words_that_a_log_is_read_for(device: Device, logged) -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device") as raised:
        device.shown("device-mismatch", "Bad").train(nn.Linear(8, 3), DATA)
    assert logged(raised.value) == {"device-mismatch"}


def test_with_both_on_the_device_it_trains(device: Device) -> None:
    model = nn.Linear(8, 3)
    before = model.weight.detach().clone()
    device.shown("device-mismatch", "Good").train(model, DATA)
    assert model.weight.device.type == device.name
    assert not torch.equal(model.weight.detach().cpu(), before)
