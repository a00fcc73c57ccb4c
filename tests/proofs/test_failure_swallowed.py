"""A broad except lets a training that never steps run to its end."""

from __future__ import annotations

import pytest
import torch
from torch import nn

WRONG = [(torch.ones(4, 3), torch.zeros(5, dtype=torch.long))] * 3


def test_every_batch_fails_and_nobody_hears_of_it(shown) -> None:
    model = nn.Linear(3, 2)
    start = model.weight.detach().clone()
    shown("failure-swallowed", "Bad").train(model, WRONG)
    assert torch.equal(model.weight, start)


def test_an_exact_except_lets_other_errors_through(shown) -> None:
    with pytest.raises(ValueError, match="batch_size"):
        shown("failure-swallowed", "Good").train(nn.Linear(3, 2), WRONG)


def test_gradients_of_a_batch_that_failed_after_backward_stay() -> None:
    layer = nn.Linear(3, 1)
    try:
        layer(torch.ones(1, 3)).sum().backward()
        raise RuntimeError("after backward")
    except RuntimeError:
        layer(torch.ones(1, 3)).sum().backward()
    assert layer.weight.grad.tolist() == [[2.0, 2.0, 2.0]]
