"""An exponential that overflows makes every weight NaN in one step; the same loss by logsumexp does not."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize(("section", "share"), [("Bad", 1.0), ("Good", 0.0)])
def test_the_weights_become_nan(shown, section: str, share: float) -> None:
    encoder = shown("non-finite-origin", section).train(steps=5)
    weights = torch.cat([parameter.detach().flatten() for parameter in encoder.parameters()])
    assert torch.isnan(weights).float().mean().item() == share


def test_where_both_are_finite_they_are_the_same_loss(shown) -> None:
    torch.manual_seed(0)
    left, right = 0.1 * torch.randn(8, 4), 0.1 * torch.randn(8, 4)
    bad, good = (shown("non-finite-origin", section).Contrast()(left, right) for section in ("Bad", "Good"))
    torch.testing.assert_close(bad, good)


def test_exp_overflows_where_the_page_says() -> None:
    limits = {torch.float16: (11.0, 11.2), torch.float32: (88.7, 88.8), torch.bfloat16: (88.0, 89.0)}
    for dtype, (below, above) in limits.items():
        assert torch.tensor(below, dtype=dtype).exp().isfinite()
        assert torch.tensor(above, dtype=dtype).exp().isinf()


def test_the_derivative_of_a_root_at_zero_is_infinite() -> None:
    x = torch.zeros(1, requires_grad=True)
    x.sqrt().backward()
    assert x.grad is not None
    assert x.grad.isinf().all()
    x.grad = None
    x.pow(2).sqrt().backward()
    assert x.grad is not None
    assert x.grad.isnan().all()
