"""A negative class weight takes the loss below 0, and its class is never predicted."""

from __future__ import annotations

import torch


def recognised(model: torch.nn.Module) -> float:
    x = torch.randn(1000, 8, generator=torch.Generator().manual_seed(1))
    third = x[:, :3].argmax(1) == 2
    return float((model(x).argmax(1) == 2)[third].float().mean())


def test_a_negative_weight_is_paid_by_its_class(shown) -> None:
    model, loss = shown("loss-below-possible", "Bad").train()
    assert loss < -1
    assert recognised(model) == 0


def test_with_positive_weights_it_is_learned(shown) -> None:
    model, loss = shown("loss-below-possible", "Good").train()
    assert loss > 0
    assert recognised(model) > 0.8
