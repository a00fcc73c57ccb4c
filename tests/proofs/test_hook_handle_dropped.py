"""Every registration adds a hook that stays."""

from __future__ import annotations

import pytest
import torch
from torch import nn


@pytest.mark.parametrize(("section", "kept", "left"), [("Bad", 15, 5), ("Good", 5, 0)])
def test_hooks_add_up(shown, section: str, kept: int, left: int) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    values = shown("hook-handle-dropped", section).features(model, [torch.ones(1, 2)] * 5)
    assert len(values) == kept
    assert len(model[0]._forward_hooks) == left
