"""Clipped after the step, one bad batch moves the weights as far as it likes."""

from __future__ import annotations

import torch
from torch import nn


def moved(train) -> float:
    torch.manual_seed(0)
    model = nn.Linear(10, 1)
    start = nn.utils.parameters_to_vector(model.parameters()).detach().clone()
    inputs = torch.randn(64, 10)
    train(model, [(inputs, 1e4 * inputs.sum(1, keepdim=True))])
    return (nn.utils.parameters_to_vector(model.parameters()) - start).norm().item()


def test_clipping_after_the_step_limits_nothing(shown) -> None:
    assert moved(shown("clip-after-step", "Bad").train) > 1_000


def test_clipping_before_the_step_limits_it_to_the_rate_times_the_norm(shown) -> None:
    assert moved(shown("clip-after-step", "Good").train) <= 0.1 * 1.001
