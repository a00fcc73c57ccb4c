"""Layers in a plain list are not trained, not moved, not saved, not switched."""

from __future__ import annotations

import pytest
import torch
from torch import nn


@pytest.fixture(params=["Bad", "Good"])
def stack(request: pytest.FixtureRequest, shown) -> tuple[bool, nn.Module]:
    torch.manual_seed(0)
    return request.param == "Good", shown("unregistered-modules", request.param).Stack(4, 3)


def test_only_registered_layers_are_parameters_and_saved(stack: tuple[bool, nn.Module]) -> None:
    whole, model = stack
    assert len(list(model.parameters())) == (8 if whole else 2)
    assert any(name.startswith("layers.") for name in model.state_dict()) == whole


def test_only_registered_layers_are_trained(stack: tuple[bool, nn.Module]) -> None:
    whole, model = stack
    before = model.layers[0].weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.randn(16, 4)).pow(2).mean().backward()
    optimizer.step()
    assert torch.equal(before, model.layers[0].weight) != whole


def test_only_registered_layers_follow_the_model(stack: tuple[bool, nn.Module]) -> None:
    whole, model = stack
    model.to(torch.float64).eval()
    assert (model.layers[0].weight.dtype == torch.float64) == whole
    assert model.layers[0].training != whole
