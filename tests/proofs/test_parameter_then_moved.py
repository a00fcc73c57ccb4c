"""What .to() returns is the parameter only when there is nothing to move."""

from __future__ import annotations

import pytest
import torch
from torch import nn


@pytest.mark.parametrize("section", ["Bad", "Good"])
def test_the_result_of_a_move_is_no_parameter(shown, section: str) -> None:
    model = shown("parameter-then-moved", section).Scale(3, torch.float64)
    assert len(list(model.parameters())) == (1 if section == "Good" else 0)
    assert ("weight" in model.state_dict()) == (section == "Good")


def test_where_nothing_moves_the_fault_hides(shown) -> None:
    model = shown("parameter-then-moved", "Bad").Scale(3, torch.device("cpu"))
    assert isinstance(model.weight, nn.Parameter)


def test_the_optimizer_has_nothing_to_train(shown) -> None:
    model = shown("parameter-then-moved", "Bad").Scale(3, torch.float64)
    with pytest.raises(ValueError, match="empty parameter list"):
        torch.optim.SGD(model.parameters(), lr=0.1)


def test_arithmetic_and_views_make_tensors_and_in_place_methods_do_not() -> None:
    weight = nn.Parameter(torch.ones(2))
    assert not isinstance(weight * 0.1, nn.Parameter)
    assert not isinstance(weight.unsqueeze(0), nn.Parameter)
    assert weight.requires_grad_(False) is weight
    assert isinstance(nn.ParameterList([nn.Parameter(torch.ones(2)).double()])[0], nn.Parameter)
