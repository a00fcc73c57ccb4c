"""A layer made in forward is another one at every call, and part of no model."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize("section", ["Bad", "Good"])
def test_equal_inputs_give_unequal_outputs(shown, section: str) -> None:
    torch.manual_seed(0)
    model = shown("layer-built-in-forward", section).Classifier(4, 2).eval()
    x = torch.randn(3, 4)
    assert torch.equal(model(x), model(x)) == (section == "Good")
    assert any(name.startswith("head.") for name in model.state_dict()) == (section == "Good")
