"""What was kept as the best follows the training; a copy does not."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def fitted(shown, section: str) -> tuple[float, float]:
    torch.manual_seed(0)
    inputs = torch.randn(64, 4)
    targets = inputs.sum(1, keepdim=True)
    rates = [0.1] * 20 + [1.6] * 4  # the last steps are too large
    model, best = shown("best-state-aliased", section).fit(nn.Linear(4, 1), inputs, targets, rates)
    with torch.no_grad():
        return best, nn.functional.mse_loss(model(inputs), targets).item()


def test_by_reference_the_best_is_the_last(shown) -> None:
    best, returned = fitted(shown, "Bad")
    assert best == pytest.approx(0.0036, rel=0.05)
    assert returned == pytest.approx(0.29, rel=0.05)


def test_a_copy_is_the_best(shown) -> None:
    best, returned = fitted(shown, "Good")
    assert returned == pytest.approx(best)


@pytest.mark.parametrize("copied", [dict, lambda state: state.copy()])
def test_a_shallow_copy_shares_the_tensors(copied) -> None:
    model = nn.Linear(2, 1)
    assert copied(model.state_dict())["weight"].data_ptr() == model.weight.data_ptr()
