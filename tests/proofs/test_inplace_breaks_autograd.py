"""Which results backward needs as they are."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

LOADER = [(torch.ones(4, 8), torch.zeros(4, 8))]
MODIFIED = "modified by an inplace operation"


def edited(operation) -> torch.Tensor:
    x = torch.full((4, 5), 0.5, requires_grad=True)
    y = operation(x * 1)
    y += 1
    return y.sum()


def test_the_training_raises_at_its_first_backward(shown) -> None:
    with pytest.raises(RuntimeError, match=MODIFIED):
        shown("inplace-breaks-autograd", "Bad").train(LOADER)


def test_the_training_runs_when_the_sum_is_a_new_tensor(shown) -> None:
    assert shown("inplace-breaks-autograd", "Good").train(LOADER).fc.weight.grad is not None


@pytest.mark.parametrize(
    "name",
    ["sigmoid", "tanh", "relu", "exp", "exp2", "expm1", "sqrt", "rsqrt", "reciprocal", "softmax", "log_softmax"],
)
def test_these_keep_their_result(name: str) -> None:
    operation = getattr(torch, name)
    with pytest.raises(RuntimeError, match=MODIFIED):
        edited(lambda x: operation(x, dim=-1) if "softmax" in name else operation(x)).backward()


@pytest.mark.parametrize("operation", [F.leaky_relu, F.gelu, F.silu, F.dropout, nn.Linear(5, 5), nn.BatchNorm1d(5)])
def test_these_do_not(operation) -> None:
    edited(operation).backward()


def test_no_grad_is_no_way_round_and_data_makes_the_gradient_wrong() -> None:
    x = torch.zeros(1, requires_grad=True)
    y = torch.sigmoid(x)
    y.data += 1
    y.backward()
    assert x.grad.item() == pytest.approx(1.5 * (1 - 1.5))  # and not 0.25
    z = torch.sigmoid(x)
    with torch.no_grad():
        z += 1
    with pytest.raises(RuntimeError, match=MODIFIED):
        z.backward()
