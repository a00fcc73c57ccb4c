"""In bfloat16 the scaler changes no bit of the training."""

from __future__ import annotations

import torch
from torch import nn


def trained(train) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    batches = [(torch.randn(64, 16), torch.randn(64, 4)) for _ in range(5)]
    train(model, batches, torch.optim.SGD(model.parameters(), lr=0.1), "cpu")
    return [p.detach() for p in model.parameters()]


def test_the_weights_are_the_same_with_and_without_a_scaler(shown) -> None:
    pairs = zip(*(trained(shown("scaler-with-bf16", each).train) for each in ("Bad", "Good")), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)


def test_with_a_scaler_every_gradient_is_gone_over_once_more(shown, monkeypatch) -> None:
    looked: list[int] = []
    check = torch._amp_foreach_non_finite_check_and_unscale_
    monkeypatch.setattr(
        torch,
        "_amp_foreach_non_finite_check_and_unscale_",
        lambda grads, *rest: (looked.append(len(grads)), check(grads, *rest)),
    )
    trained(shown("scaler-with-bf16", "Good").train)
    assert looked == []
    trained(shown("scaler-with-bf16", "Bad").train)
    assert looked == [4] * 5


def test_bfloat16_holds_what_vanishes_in_float16() -> None:
    small = torch.tensor(1e-30)
    assert small.half().item() == 0 < small.bfloat16().item()
