"""Shows how to wrap a function without a derivative and how near its finite differences come, element by element.

A stand-in for a foreign library (a damped swing, computed with math on one number at a time) is wrapped in a Function
whose backward uses central differences. Printed is, for several steps h, the largest error of any element against the
exact derivative and the error that is to be expected from h; then whether each element is within the stated tolerance.
"""

# pyright: reportIncompatibleMethodOverride=false

import argparse
import math
from typing import Any

import torch

TINY: float = torch.finfo(torch.float64).eps
THIRD = 16.0  # a bound of library's third derivative between -2 and 2


def library(x: float) -> float:
    """What cannot be differentiated: the outside world."""
    return math.exp(-0.3 * x) * math.sin(2.0 * x)


def exact(x: float) -> float:
    return math.exp(-0.3 * x) * (2.0 * math.cos(2.0 * x) - 0.3 * math.sin(2.0 * x))


def expected_error(h: float) -> float:
    """Of central differences of this library: h² / 6 times the third derivative, plus the rounding of two values."""
    return h * h / 6 * THIRD + TINY / h


class Swing(torch.autograd.Function):  # type: ignore[misc]
    """library, element by element; its gradient is an approximation with a step of h, and is not differentiable."""

    @staticmethod
    def forward(x: torch.Tensor, h: float) -> torch.Tensor:
        return torch.tensor([library(each) for each in x.flatten().tolist()], dtype=x.dtype).reshape(x.shape)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[torch.Tensor, float], output: torch.Tensor) -> None:
        x, ctx.h = inputs
        ctx.save_for_backward(x)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[torch.Tensor, None]:
        (x,) = ctx.saved_tensors
        h = ctx.h
        slopes = [(library(each + h) - library(each - h)) / (2 * h) for each in x.flatten().tolist()]
        return grad_output * torch.tensor(slopes, dtype=x.dtype).reshape(x.shape), None


def largest_error(x: torch.Tensor, h: float) -> float:
    """Over the elements, each by itself: a sum would let errors cancel, or add up."""
    x = x.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(Swing.apply(x, h).sum(), x)
    right = torch.tensor([exact(each) for each in x.tolist()], dtype=x.dtype)
    return float((gradient - right).abs().max())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--tolerance", type=float, default=1e-8, help="the error of one element that your use allows")
    tolerance = parser.parse_args().tolerance
    x = torch.linspace(-2, 2, 9, dtype=torch.float64)
    for h in (1e-2, 1e-4, 6e-6, 1e-8, 1e-10):
        print(f"h {h:.0e}  largest error {largest_error(x, h):.1e}  expected up to {expected_error(h):.1e}")
    best = largest_error(x, 6e-6)
    print(f"{'within' if best <= tolerance else 'NOT within'} {tolerance:.0e} at h 6e-06: {best:.1e}")


if __name__ == "__main__":
    main()
