"""The way into an autograd function."""

from __future__ import annotations

import pytest
import torch


def test_an_object_that_is_called_raises(shown) -> None:
    activate = shown("function-called-directly", "Bad").activate
    with (
        pytest.warns(DeprecationWarning, match="should not be instantiated"),
        pytest.raises(RuntimeError, match="Legacy"),
    ):
        activate(torch.ones(2, requires_grad=True))


def test_forward_by_hand_lacks_its_ctx(shown) -> None:
    swish = shown("function-called-directly", "Bad").Swish
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        swish.forward(torch.ones(2))


def test_apply_is_the_way_in(shown) -> None:
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    activate = shown("function-called-directly", "Good").activate
    assert "SwishBackward" in type(activate(x)).__name__ or "SwishBackward" in str(activate(x).grad_fn)
    assert torch.autograd.gradcheck(activate, (x,))


def test_with_forward_by_hand_the_backward_is_never_used() -> None:
    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output

    gradients = []
    for function in (lambda x: Step.forward(None, x), Step.apply):
        x = torch.tensor([0.3, 0.8], requires_grad=True)
        function(x).sum().backward()
        gradients.append(x.grad.tolist())
    assert gradients == [[0.0, 0.0], [1.0, 1.0]]
