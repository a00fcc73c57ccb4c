"""One NaN among the inputs ends in all weights."""

from __future__ import annotations

import torch


def test_one_nan_reaches_every_weight(shown) -> None:
    model = shown("input-not-finite", "Bad").train()
    assert all(torch.isnan(p).all() for p in model.parameters())


def test_without_the_sample_all_stays_finite(shown) -> None:
    model = shown("input-not-finite", "Good").train()
    assert all(torch.isfinite(p).all() for p in model.parameters())


def test_a_mask_of_zeros_does_not_take_a_nan_away() -> None:
    prediction = torch.zeros(2, requires_grad=True)
    target, mask = torch.tensor([1.0, float("nan")]), torch.tensor([1.0, 0.0])
    (mask * (prediction - target) ** 2).sum().backward()
    assert torch.isnan(prediction.grad).tolist() == [False, True]


def test_infinity_hides_behind_tanh_until_the_gradient() -> None:
    weight = torch.ones(1, requires_grad=True)
    loss = torch.tanh(weight * float("inf")).sum()
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isnan(weight.grad).all()
