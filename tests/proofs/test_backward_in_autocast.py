"""A backward inside the region computes the gradient of a float32 layer in bfloat16."""

from __future__ import annotations

import torch
from torch import nn


def gradient(step) -> torch.Tensor:
    torch.manual_seed(0)
    body, head = nn.Linear(64, 64), nn.Linear(64, 1)
    step(body, head, torch.randn(128, 64), "cpu")
    return head.weight.grad


def error(step) -> float:
    """The largest relative error of the head's gradient, against the same features in float32 throughout."""
    torch.manual_seed(0)
    body, head = nn.Linear(64, 64), nn.Linear(64, 1)
    inputs = torch.randn(128, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        features = body(inputs).detach().float()
    head(features).pow(2).mean().backward()
    exact = head.weight.grad
    return ((gradient(step) - exact).abs().max() / exact.abs().max()).item()


def test_inside_the_region_the_gradient_has_the_precision_of_bfloat16(shown) -> None:
    assert 1e-3 < error(shown("backward-in-autocast", "Bad").step) < 1e-2


def test_after_the_region_it_has_that_of_float32(shown) -> None:
    assert error(shown("backward-in-autocast", "Good").step) < 1e-6
