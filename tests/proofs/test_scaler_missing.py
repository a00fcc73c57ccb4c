"""Without a scale every gradient of a mean over four million outputs is 0 in float16."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def gradients(train=None) -> torch.Tensor:
    """The gradients of one step that moves nothing, of outputs that are off by about 0.01."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 512))
    inputs = torch.randn(8192, 16)
    with torch.no_grad():
        targets = model(inputs) + 0.01 * torch.randn(8192, 512)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    if train is None:
        nn.functional.mse_loss(model(inputs), targets).backward()
    else:
        train(model, [(inputs, targets)], optimizer, "cpu")
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def test_without_a_scaler_every_gradient_is_zero(shown) -> None:
    assert gradients(shown("scaler-missing", "Bad").train).count_nonzero() == 0


def test_with_a_scaler_they_are_those_of_float32(shown) -> None:
    exact = gradients()
    assert gradients(shown("scaler-missing", "Good").train).norm().item() == pytest.approx(exact.norm().item(), rel=0.2)


def test_the_smallest_float16_is_6e_8_and_half_of_it_is_zero() -> None:
    assert torch.tensor([5.97e-8, 2.97e-8]).half().tolist() == [pytest.approx(5.96e-8, rel=0.01), 0.0]
