"""Binary cross entropy is refused in an autocast region of an accelerator, and not with logits."""

from __future__ import annotations

import pytest
import torch
from devices import Device
from torch import nn


def loss(device: Device, section: str) -> torch.Tensor:
    model, inputs = nn.Linear(4, 1).to(device.name), torch.randn(8, 4, device=device.name)
    return device.shown("bce-under-autocast", section).loss_of(model, inputs, torch.ones(8, 1, device=device.name))


def test_probabilities_are_refused(device: Device) -> None:
    with pytest.raises(RuntimeError, match="unsafe to autocast"):
        loss(device, "Bad")


def test_logits_are_not_and_their_loss_is_that_of_float32(device: Device) -> None:
    half = loss(device, "Good")
    torch.manual_seed(0)
    with torch.autocast(device.name, enabled=False):
        model, inputs = nn.Linear(4, 1).to(device.name), torch.randn(8, 4, device=device.name)
        full = nn.functional.binary_cross_entropy_with_logits(model(inputs), torch.ones(8, 1, device=device.name))
    assert half.dtype == torch.float32
    assert half.item() > 0
    assert full.item() > 0


def test_probabilities_in_float32_outside_of_the_region_are_not_refused(device: Device) -> None:
    chance = torch.rand(8, 1, device=device.name)
    with torch.autocast(device.name), torch.autocast(device.name, enabled=False):
        nn.functional.binary_cross_entropy(chance, torch.ones_like(chance))
