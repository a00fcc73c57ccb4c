"""torch.tensor(tensor) warns, and its copy gives no gradient."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def slope(loss) -> float:
    torch.manual_seed(0)
    model = nn.Linear(1, 1, bias=False)
    loss(model, torch.ones(1, 1), torch.zeros(1, 1)).backward()
    assert model.weight.grad is not None
    return (model.weight.grad / model.weight).item()


def test_the_penalty_gives_no_gradient(shown) -> None:
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        assert slope(shown("tensor-of-tensor", "Bad").loss) == pytest.approx(2.0)


def test_without_the_copy_it_does(shown) -> None:
    assert slope(shown("tensor-of-tensor", "Good").loss) == pytest.approx(2.2)


def test_the_warnings_own_advice_loses_the_gradient_and_clone_keeps_it() -> None:
    x = torch.ones(2, requires_grad=True) * 2
    with pytest.warns(UserWarning, match=r"detach\(\).clone\(\)"):
        assert torch.tensor(x).grad_fn is None
    assert x.detach().clone().grad_fn is None
    assert x.clone().grad_fn is not None
