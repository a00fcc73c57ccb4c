"""What mark_dirty tells autograd."""

from __future__ import annotations

import torch


def total(x: torch.Tensor, function: type[torch.autograd.Function]) -> torch.Tensor:
    y = x * 1
    scaled = function.apply(y, 3.0)
    return (scaled + y).sum()


def slopes(function: type[torch.autograd.Function]) -> tuple[float, float]:
    """The derivative by the values, and by the gradient."""
    x = torch.ones(1, dtype=torch.float64, requires_grad=True)
    loss = total(x, function)
    loss.backward()
    with torch.no_grad():
        moved = total(x + 0.5, function)
    assert x.grad is not None
    return ((moved - loss) / 0.5).item(), x.grad.item()


def test_not_marked_the_gradient_is_that_of_the_old_values(shown) -> None:
    assert slopes(shown("dirty-not-marked", "Bad").Scale) == (6.0, 4.0)


def test_marked_it_is_right(shown) -> None:
    assert slopes(shown("dirty-not-marked", "Good").Scale) == (6.0, 6.0)
