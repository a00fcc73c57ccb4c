"""What torch.where does not pick still has its derivative multiplied by zero."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize(("section", "finite"), [("Bad", False), ("Good", True)])
def test_the_gradient_at_distance_zero(shown, section: str, finite: bool) -> None:
    left = torch.ones(1, 3, requires_grad=True)
    found = shown("nan-gradient-where", section).distance(left, torch.ones(1, 3))
    found.sum().backward()
    assert found.item() == 0
    assert bool(left.grad.isfinite().all()) is finite


@pytest.mark.parametrize(
    "steep",
    [torch.sqrt, torch.log, torch.reciprocal, torch.rsqrt, lambda x: 1 / x, lambda x: x**0.5, lambda x: x**-0.4],
)
def test_operations_whose_derivative_at_zero_is_infinite(steep) -> None:
    x = torch.zeros(1, requires_grad=True)
    torch.where(x > 0, steep(x), 0.0).sum().backward()
    assert x.grad.isnan().all()


def test_a_clamped_input_has_a_finite_gradient() -> None:
    x = torch.zeros(1, requires_grad=True)
    torch.where(x > 0, x.clamp(min=1e-12).sqrt(), 0.0).sum().backward()
    assert x.grad.tolist() == [0.0]
