"""forward() passes the hooks by."""

from __future__ import annotations

import pytest
import torch
from torch import nn


@pytest.mark.parametrize("section", ["Bad", "Good"])
def test_hooks_run_only_when_the_module_is_called(shown, section: str) -> None:
    model, heard = nn.Linear(2, 2), []
    model.register_forward_hook(lambda module, args, output: heard.append(output))
    shown("forward-called-directly", section).predict(model, torch.ones(1, 2))
    assert len(heard) == (1 if section == "Good" else 0)


def test_a_pruning_mask_is_applied_by_a_hook(shown) -> None:
    from torch.nn.utils import prune

    model = prune.l1_unstructured(nn.Linear(4, 4), "weight", amount=0.5)
    with torch.no_grad():
        model.weight_orig.mul_(2)
    stale = model.weight.clone()
    shown("forward-called-directly", "Bad").predict(model, torch.ones(1, 4))
    assert torch.equal(model.weight, stale)
    shown("forward-called-directly", "Good").predict(model, torch.ones(1, 4))
    assert not torch.equal(model.weight, stale)
