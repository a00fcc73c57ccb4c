"""Second derivatives through a backward that leaves the graph."""

from __future__ import annotations

import pytest
import torch


def second(function: type[torch.autograd.Function]) -> float:
    """The second derivative of x to the sixth, at 2: 30 * 2**4 = 480."""
    x = torch.tensor(2.0, requires_grad=True)
    (gradient,) = torch.autograd.grad(function.apply(x) ** 2, x, create_graph=True)
    gradient.backward()
    assert x.grad is not None
    return x.grad.item()


def test_the_second_derivative_is_wrong_without_an_error(shown) -> None:
    assert second(shown("not-once-differentiable", "Bad").Cube) == 288.0


def test_marked_it_is_refused(shown) -> None:
    with pytest.raises(RuntimeError, match="marked with @once_differentiable"):
        second(shown("not-once-differentiable", "Good").Cube)


def test_in_the_graph_it_is_right() -> None:
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad_output):
            return 3 * ctx.saved_tensors[0] ** 2 * grad_output

    assert second(Cube) == 480.0
