"""What float32 does to a numerical derivative."""

from __future__ import annotations

import pytest
import torch
from torch.autograd.gradcheck import GradcheckError


def test_a_right_backward_fails_in_float32(shown) -> None:
    check = shown("gradcheck-in-float32", "Bad").check
    with pytest.warns(UserWarning, match="not a double precision"), pytest.raises(GradcheckError, match="Jacobian"):
        check()


def test_in_float64_it_passes(shown) -> None:
    assert shown("gradcheck-in-float32", "Good").check()


def test_tolerances_that_let_float32_pass_let_a_wrong_backward_pass() -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        def backward(ctx, grad_output):
            return 2.1 * grad_output

    single = torch.linspace(-2, 2, 8, requires_grad=True)
    with pytest.warns(UserWarning, match="not a double precision"):
        assert torch.autograd.gradcheck(Wrong.apply, (single,), atol=0.5, rtol=0.1)
    double = torch.linspace(-2, 2, 8, dtype=torch.float64, requires_grad=True)
    with pytest.raises(GradcheckError):
        torch.autograd.gradcheck(Wrong.apply, (double,))
