"""(N, 1) against (N,) teaches every prediction the mean of all targets."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def error(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    with torch.no_grad():
        return nn.functional.mse_loss(model(x).squeeze(-1), y).item()


def test_a_broadcast_loss_ends_at_the_variance_of_the_targets(shown) -> None:
    model, x, y = shown("loss-broadcast", "Bad").train()
    assert error(model, x, y) == pytest.approx(y.var(unbiased=False).item(), rel=0.05)
    assert model(x).std() < 0.05 * y.std()


def test_equal_shapes_solve_it(shown) -> None:
    assert error(*shown("loss-broadcast", "Good").train()) < 0.01


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_the_losses_of_torch_warn(name: str) -> None:
    with pytest.warns(UserWarning, match="different to the input size"):
        getattr(nn.functional, name)(torch.zeros(4, 1), torch.zeros(4))
