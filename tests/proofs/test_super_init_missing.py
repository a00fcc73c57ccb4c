"""Without the base class's __init__ a module has nowhere to keep its parts."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def test_a_layer_cannot_be_assigned_before_the_base_is_built(shown) -> None:
    with pytest.raises(AttributeError, match="cannot assign module before Module"):
        shown("super-init-missing", "Bad").Classifier(4, 2)


def test_with_the_call_first_the_module_works(shown) -> None:
    model = shown("super-init-missing", "Good").Classifier(4, 2)
    assert model(torch.ones(1, 4)).shape == (1, 2)


def test_numbers_alone_fail_only_when_the_module_is_used() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            self.factor = 2.0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factor

    with pytest.raises(AttributeError, match="_backward_hooks"):
        Scaled()(torch.ones(1))
    with pytest.raises(AttributeError, match="_parameters"):
        list(Scaled().parameters())


def test_plain_values_may_stand_before_it() -> None:
    class Early(nn.Module):
        def __init__(self) -> None:
            self.factor, self.table, self.parts = 2.0, torch.ones(2), [nn.Linear(1, 1)]
            super().__init__()

    assert Early().factor == 2.0
