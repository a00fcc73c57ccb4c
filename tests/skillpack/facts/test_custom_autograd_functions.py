"""The facts of the skill of custom gradients, taken again from the installed torch."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck
from torch.utils.checkpoint import checkpoint


def test_kink_fails() -> None:
    at_zero = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Jacobian mismatch") as found:
        gradcheck(torch.relu, at_zero)
    assert "0.5000" in str(found.value)
    assert torch.autograd.grad(torch.relu(at_zero), at_zero)[0].item() == 0


def test_float32_fails() -> None:
    torch.manual_seed(0)
    x = torch.randn(6, requires_grad=True)
    with pytest.warns(UserWarning, match="not a double precision floating point"), pytest.raises(RuntimeError):
        gradcheck(torch.sigmoid, x)
    assert gradcheck(torch.sigmoid, x.detach().double().requires_grad_())


def test_gradcheck_defaults() -> None:
    defaults = {name: each.default for name, each in inspect.signature(gradcheck).parameters.items()}
    assert (defaults["eps"], defaults["atol"], defaults["rtol"]) == (1e-6, 1e-5, 1e-3)


def test_gradcheck_calls() -> None:
    def calls(numbers: int) -> int:
        found = []

        def function(x: torch.Tensor) -> torch.Tensor:
            found.append(1)
            return torch.sin(x)

        assert gradcheck(function, torch.ones(numbers, dtype=torch.float64, requires_grad=True))
        return len(found)

    assert calls(20) - calls(10) == 20


def test_dirty_silent() -> None:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.mul_(3)

        @staticmethod
        def backward(ctx: Any, grad_output: torch.Tensor) -> torch.Tensor:
            return grad_output * 3

    x = torch.ones(2, requires_grad=True)
    y = x * 1
    both = Scale.apply(y) + y
    both.sum().backward()
    assert both.tolist() == [6, 6]
    assert x.grad is not None
    assert x.grad.tolist() == [4, 4]


def test_mask_byte() -> None:
    assert torch.zeros(512, 1024).gt(0).nbytes == 524_288


def test_own_checkpoint_loses() -> None:
    class Recompute(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, block: nn.Module, x: torch.Tensor) -> torch.Tensor:
            ctx.block = block
            ctx.save_for_backward(x)
            return block(x)

        @staticmethod
        def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[None, torch.Tensor]:
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                y = ctx.block(x)
            return None, torch.autograd.grad(y, x, grad_output)[0]

    block, x = nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True)
    Recompute.apply(block, x).sum().backward()
    assert block.weight.grad is None
    checkpoint(block, x, use_reentrant=False).sum().backward()
    assert block.weight.grad is not None


def test_reentrant_warns() -> None:
    x = torch.ones(1, 2, requires_grad=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(nn.Linear(2, 2), x)


def test_best_step() -> None:
    x = torch.linspace(-2, 2, 9, dtype=torch.float64)

    def error(h: float) -> float:
        return float((((x + h).sin() - (x - h).sin()) / (2 * h) - x.cos()).abs().max())

    assert error(6e-6) < 1e-9
    assert error(1e-10) > 1000 * error(6e-6)


def test_square_rule() -> None:
    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    given = torch.randn(4, dtype=torch.float64)
    (gradient,) = torch.autograd.grad(3 * x**2 + 1, x, given)
    torch.testing.assert_close(gradient, 2 * 3 * x.detach() * given)


def test_opcheck_tests() -> None:
    assert len(inspect.signature(torch.library.opcheck).parameters["test_utils"].default) == 4
