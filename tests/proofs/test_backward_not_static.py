"""Autograd functions have no objects."""

from __future__ import annotations

import pytest
import torch


def test_what_init_set_is_not_there_in_backward(shown) -> None:
    x = torch.ones(2, requires_grad=True)
    y = shown("backward-not-static", "Bad").reverse(x, 0.5)
    with pytest.raises(AttributeError, match="has no attribute 'strength'"):
        y.sum().backward()


def test_static_it_works(shown) -> None:
    x = torch.ones(2, requires_grad=True)
    shown("backward-not-static", "Good").reverse(x, 0.5).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [-0.5, -0.5]


def test_through_apply_a_missing_decorator_alone_does_no_harm() -> None:
    class Double(torch.autograd.Function):
        def forward(self, x):
            return 2 * x

        def backward(self, grad_output):
            return 2 * grad_output

    x = torch.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]
