"""torch counts the gradients at the first backward."""

from __future__ import annotations

import pytest
import torch


def apply(function: type[torch.autograd.Function]) -> torch.Tensor:
    x = torch.tensor([0.2, 0.7], requires_grad=True)
    function.apply(x, 4).sum().backward()
    assert x.grad is not None
    return x.grad


def test_too_few_gradients_raise(shown) -> None:
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 2, got 1\)"):
        apply(shown("gradient-count", "Bad").Quantise)


def test_one_value_for_each_input_is_right(shown) -> None:
    assert torch.equal(apply(shown("gradient-count", "Good").Quantise), torch.ones(2))


@pytest.mark.parametrize(
    ("returned", "raises"),
    [(lambda g: (g, None), False), (lambda g: (g, None, None), False), (lambda g: None, True), (lambda g: g, True)],
    ids=["exact", "none too many", "one None for two", "one for two"],
)
def test_a_single_none_counts_as_one_and_further_nones_are_accepted(returned, raises: bool) -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            return x * 2

        @staticmethod
        def backward(ctx, grad_output):
            return returned(grad_output)

    if raises:
        with pytest.raises(RuntimeError, match="incorrect number of gradients"):
            apply(Double)
    else:
        assert torch.equal(apply(Double), torch.ones(2))


def test_an_input_with_a_default_may_be_left_out() -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor=2):
            return x * factor

        @staticmethod
        def backward(ctx, grad_output):
            return grad_output * 2

    x = torch.ones(2, requires_grad=True)
    Double.apply(x).sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.full((2,), 2.0))
