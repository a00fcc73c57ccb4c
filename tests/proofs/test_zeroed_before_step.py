"""Cleared between backward and step, gradients change nothing."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def regression() -> tuple[nn.Module, list[tuple[torch.Tensor, torch.Tensor]]]:
    torch.manual_seed(0)
    model, truth, inputs = nn.Linear(10, 1), torch.randn(10, 1), torch.randn(640, 10)
    return model, [(part, part @ truth) for part in inputs.split(64)]


def loss(model: nn.Module, loader) -> float:
    return sum(nn.functional.mse_loss(model(x), y).item() for x, y in loader)


def test_cleared_too_early_the_weights_are_those_of_the_start(shown) -> None:
    model, loader = regression()
    start = model.weight.detach().clone()
    shown("zeroed-before-step", "Bad").train(model, loader, 4)
    assert torch.equal(model.weight, start)


def test_cleared_before_backward_the_loss_falls(shown) -> None:
    model, loader = regression()
    before = loss(model, loader)
    shown("zeroed-before-step", "Good").train(model, loader, 4)
    assert loss(model, loader) < before / 100


@pytest.mark.parametrize(("to_none", "moves"), [(True, False), (False, True)])
def test_zeros_let_weight_decay_go_on_and_none_does_not(to_none: bool, moves: bool) -> None:
    layer = nn.Linear(3, 1)
    start = layer.weight.detach().clone()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, weight_decay=0.1)
    layer(torch.ones(2, 3)).sum().backward()
    optimizer.zero_grad(set_to_none=to_none)
    optimizer.step()
    assert torch.equal(layer.weight, start) is not moves
