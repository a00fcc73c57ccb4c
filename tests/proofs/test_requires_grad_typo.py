"""Attributes that torch does not know freeze nothing."""

from __future__ import annotations

import pytest
import torch
from torch import nn


@pytest.mark.parametrize("section", ["Bad", "Good"])
def test_a_module_has_no_requires_grad_to_set(shown, section: str) -> None:
    torch.manual_seed(0)
    model = shown("requires-grad-typo", section).Probe(4, 2)
    before = model.backbone.weight.detach().clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.head(model.backbone(torch.randn(3, 4))).pow(2).sum().backward()
    optimizer.step()
    assert torch.equal(before, model.backbone.weight) == (section == "Good")


def test_the_misspelt_flag_and_the_hidden_method_change_nothing() -> None:
    weight = nn.Parameter(torch.ones(1))
    weight.require_grad = False
    weight.requires_grad_ = False
    assert weight.requires_grad
