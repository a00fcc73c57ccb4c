"""Without zero_grad the loss of a linear regression explodes; memory does not."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def losses(train) -> list[float]:
    torch.manual_seed(0)
    model, truth, inputs = nn.Linear(10, 1), torch.randn(10, 1), torch.randn(640, 10)
    loader = [(part, part @ truth) for part in inputs.split(64)]
    return train(model, loader, 6)


def test_a_loop_without_zero_grad_explodes(shown) -> None:
    history = losses(shown("gradients-not-zeroed", "Bad").train)
    assert history[-1] > 1e9 * history[0]


def test_a_loop_with_zero_grad_learns(shown) -> None:
    history = losses(shown("gradients-not-zeroed", "Good").train)
    assert history[-1] < 0.01 * history[0]


@pytest.mark.parametrize("batches", [1, 50])
def test_gradients_that_add_up_take_no_more_memory(batches: int) -> None:
    model = nn.Linear(10, 1)
    for _ in range(batches):
        model(torch.ones(4, 10)).sum().backward()
    assert sum(p.grad.untyped_storage().nbytes() for p in model.parameters() if p.grad is not None) == 44
