"""A plain tensor does not follow its module, and is not saved with it."""

from __future__ import annotations

import pytest
import torch
from torch import nn


@pytest.mark.parametrize("section", ["Bad", "Good"])
def test_only_a_buffer_follows_the_module(shown, section: str) -> None:
    model = shown("unregistered-tensor", section).Positions(8).to(torch.float64)
    assert (model.table.dtype == torch.float64) == (section == "Good")
    assert ("table" in model.state_dict()) == (section == "Good")


def test_on_another_device_the_plain_tensor_stays_behind(shown) -> None:
    left = shown("unregistered-tensor", "Bad").Positions(8).to("meta")
    assert left.table.device.type == "cpu"
    followed = shown("unregistered-tensor", "Good").Positions(8).to("meta")
    assert followed(torch.ones(1, 3, 8, device="meta")).shape == (1, 3, 8)


def test_a_plain_tensor_with_a_gradient_is_no_parameter() -> None:
    class Prototypes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.points = torch.randn(2, 3, requires_grad=True)

    assert list(Prototypes().parameters()) == []
