"""What torch.where does not pick still has its derivative multiplied by zero."""

from __future__ import annotations

import math

import pytest
import torch

from torchtriage.catalog.load import catalog


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


DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
STEEP = [torch.sqrt, torch.log, torch.rsqrt, torch.reciprocal, lambda x: x**0.5]


def clamped(steep, dtype: torch.dtype, bound: float) -> float:
    """The gradient at 0 of STEEP behind a clamp to BOUND."""
    x = torch.zeros(1, dtype=dtype, requires_grad=True)
    torch.where(x > 0, steep(x.clamp(min=bound)), 0.0).sum().backward()
    return x.grad.item()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("steep", STEEP)
def test_an_input_clamped_to_the_smallest_normal_number_has_a_finite_gradient(steep, dtype: torch.dtype) -> None:
    assert clamped(steep, dtype, torch.finfo(dtype).tiny) == 0.0


@pytest.mark.parametrize("bound", [1e-12, 1e-8])
@pytest.mark.parametrize("steep", STEEP)
def test_a_bound_that_float16_does_not_hold_keeps_the_nan(steep, bound: float) -> None:
    assert torch.tensor(bound, dtype=torch.float16) == 0
    assert math.isnan(clamped(steep, torch.float16, bound))


def test_the_remedy_of_the_page_is_finite_in_every_dtype() -> None:
    (code,) = (
        each.title.rpartition(": ")[2]
        for each in catalog().faults["nan-gradient-where"].remedies
        if each.id == "clamp-inside"
    )
    for dtype in DTYPES:
        x = torch.zeros(1, dtype=dtype, requires_grad=True)
        torch.where(x > 0, eval(code, {"torch": torch, "x": x}), 0.0).sum().backward()
        assert x.grad.tolist() == [0.0]
