"""Binary cross entropy is refused in an autocast region of an accelerator, and not with logits."""

from __future__ import annotations

import pytest
import torch
from devices import Device
from torch import nn


def loss(device: Device, section: str) -> torch.Tensor:
    model, inputs = nn.Linear(4, 1).to(device.name), torch.randn(8, 4, device=device.name)
    return device.shown("bce-under-autocast", section).loss_of(model, inputs, torch.ones(8, 1, device=device.name))


def test_probabilities_are_refused_in_words_that_a_log_is_read_for(device: Device, logged) -> None:
    with pytest.raises(RuntimeError, match="unsafe to autocast") as raised:
        loss(device, "Bad")
    assert logged(raised.value) == {"bce-under-autocast"}


def test_logits_are_not_and_their_loss_is_that_of_float32(device: Device) -> None:
    torch.manual_seed(1)
    half = loss(device, "Good")
    torch.manual_seed(1)
    model, inputs = nn.Linear(4, 1).to(device.name), torch.randn(8, 4, device=device.name)
    full = nn.functional.binary_cross_entropy_with_logits(model(inputs), torch.ones(8, 1, device=device.name))
    assert half.item() == pytest.approx(full.item(), rel=1e-2)


def test_probabilities_in_float32_outside_of_the_region_are_not_refused(device: Device) -> None:
    chance = torch.rand(8, 1, device=device.name)
    with torch.autocast(device.name), torch.autocast(device.name, enabled=False):
        nn.functional.binary_cross_entropy(chance, torch.ones_like(chance))
