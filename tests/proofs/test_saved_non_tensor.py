"""What save_for_backward takes, and when torch says so."""

from __future__ import annotations

import pytest
import torch


def test_a_number_raises_when_an_input_needs_a_gradient(shown) -> None:
    tanh = shown("saved-non-tensor", "Bad").ScaledTanh
    with pytest.raises(TypeError, match="can only save variables, but argument 1 is of type float"):
        tanh.apply(torch.ones(2, requires_grad=True), 0.5)


def test_without_a_gradient_nothing_is_said(shown) -> None:
    tanh = shown("saved-non-tensor", "Bad").ScaledTanh
    assert tanh.apply(torch.ones(2), 0.5).shape == (2,)
    with torch.no_grad():
        assert tanh.apply(torch.ones(2, requires_grad=True), 0.5).shape == (2,)


def test_as_an_attribute_the_gradient_is_right(shown) -> None:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(shown("saved-non-tensor", "Good").ScaledTanh.apply, (x, 0.5))


def test_none_may_be_saved() -> None:
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x.clone()

        @staticmethod
        def backward(ctx, grad_output):
            assert ctx.saved_tensors[1] is None
            return grad_output

    x = torch.ones(2, requires_grad=True)
    Same.apply(x).sum().backward()
    assert x.grad is not None
