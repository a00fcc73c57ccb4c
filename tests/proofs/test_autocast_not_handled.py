"""Autocast around forward is not around backward."""

from __future__ import annotations

import pytest
import torch


def test_types_meet_that_do_not_fit(shown) -> None:
    x, weight = torch.ones(2, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    with pytest.raises(RuntimeError, match="same dtype"):
        shown("autocast-not-handled", "Bad").step(x, weight)


def test_with_both_decorators_backward_runs(shown) -> None:
    x, weight = torch.ones(2, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    shown("autocast-not-handled", "Good").step(x, weight)
    assert weight.grad is not None
    assert torch.equal(weight.grad, torch.full((4, 3), 2.0))
