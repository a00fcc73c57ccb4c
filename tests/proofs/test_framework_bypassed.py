"""What Accelerate and Lightning count on, shown on torch alone."""

from __future__ import annotations

import pytest
import torch


def test_a_scaler_that_never_scaled_refuses_to_step() -> None:
    weight = torch.ones(2, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([weight], lr=0.1), torch.amp.GradScaler("cpu")
    weight.sum().backward()
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)


def test_a_graph_is_gone_after_its_backward() -> None:
    weight = torch.ones(2, requires_grad=True)
    loss = weight.square().sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        loss.backward()


def test_a_loss_that_is_not_divided_gives_gradients_as_many_times_as_large() -> None:
    weight = torch.ones(2, requires_grad=True)
    for _ in range(4):
        weight.sum().backward()
    whole = weight.grad.clone()  # type: ignore[union-attr]
    weight.grad = None
    for _ in range(4):
        (weight.sum() / 4).backward()
    assert torch.equal(whole, 4 * weight.grad)  # type: ignore[operator]
