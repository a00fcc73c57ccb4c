"""Updates of float16 weights are rounded away or become NaN, and the scaler refuses them."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def weights(train) -> torch.Tensor:
    """One step in which one input is always 0, so that its weights have no gradient."""
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    inputs = torch.randn(8, 4)
    inputs[:, 0] = 0
    return train(model, [(inputs, torch.randn(8, 2))]).weight.detach()


def test_adam_makes_float16_weights_without_a_gradient_nan(shown) -> None:
    found = weights(shown("half-model-trained", "Bad").train)
    assert found[:, 0].isnan().all()
    assert found[:, 1:].isfinite().all()


def test_float32_weights_under_autocast_stay_finite(shown) -> None:
    found = weights(shown("half-model-trained", "Good").train)
    assert found.dtype == torch.float32
    assert found.isfinite().all()


@pytest.mark.parametrize(("dtype", "left"), [(torch.float16, 1.0), (torch.float32, 0.9)])
def test_a_thousand_small_steps_change_no_float16_weight(dtype, left) -> None:
    weight = nn.Parameter(torch.ones(1, dtype=dtype))
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    for _ in range(1000):
        weight.grad = torch.full_like(weight, 0.1)
        optimizer.step()
    assert weight.item() == pytest.approx(left, rel=1e-4)


def test_adam_with_a_gradient_whose_square_is_zero_is_infinite() -> None:
    weight = nn.Parameter(torch.ones(1, dtype=torch.float16))
    optimizer = torch.optim.Adam([weight], lr=1e-3)
    weight.grad = torch.full_like(weight, 1e-4)
    optimizer.step()
    assert weight.isinf().all()


def test_half_the_distance_to_the_next_number() -> None:
    one = torch.ones(1, dtype=torch.float16)
    assert (one - 2.4e-4 == one).all()
    assert (one + 4.8e-4 == one).all()
    assert (one - 2.5e-4 != one).all()


def test_the_scaler_refuses_float16_gradients() -> None:
    model = nn.Linear(2, 1).half()
    optimizer, scaler = torch.optim.SGD(model.parameters(), lr=0.1), torch.amp.GradScaler("cpu")
    scaler.scale(model(torch.ones(1, 2).half()).float().sum() * 1e-3).backward()
    with pytest.raises(ValueError, match="Attempting to unscale FP16 gradients"):
        scaler.step(optimizer)
