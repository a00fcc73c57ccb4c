"""A default argument is one object, and a class attribute is no part of an instance."""

from __future__ import annotations

import pytest
import torch
from torch import nn


@pytest.mark.parametrize("section", ["Bad", "Good"])
def test_blocks_share_a_default(shown, section: str) -> None:
    block = shown("module-as-default-argument", section).Block
    one, other = block(2), block(2)
    assert (one.act.weight is other.act.weight) == (section == "Bad")
    with torch.no_grad():
        one.act.weight.fill_(9.0)
    assert (other.act.weight.item() == 9.0) == (section == "Bad")


def test_a_class_attribute_is_not_registered() -> None:
    class Head(nn.Module):
        out = nn.Linear(2, 2)

    assert list(Head().parameters()) == []
    assert dict(Head().state_dict()) == {}
