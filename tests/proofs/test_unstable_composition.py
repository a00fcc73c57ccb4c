"""The compositions overflow or give log(0); the combined operations do not."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F


def embeddings() -> torch.Tensor:
    torch.manual_seed(0)
    return torch.randn(64, 32)


@pytest.mark.parametrize(("dtype", "temperature"), [(torch.float16, 0.07), (torch.float32, 0.01)])
def test_a_contrastive_loss_by_hand_is_nan_in_half_and_at_a_low_temperature(shown, dtype, temperature) -> None:
    assert shown("unstable-composition", "Bad").contrastive_loss(embeddings().to(dtype), temperature).isnan()
    assert shown("unstable-composition", "Good").contrastive_loss(embeddings().to(dtype), temperature).isfinite()


def test_in_float32_at_0_07_both_say_the_same(shown) -> None:
    bad, good = (shown("unstable-composition", each).contrastive_loss(embeddings()) for each in ("Bad", "Good"))
    assert bad.item() == pytest.approx(good.item(), rel=1e-3)


def test_logits_that_are_200_apart_give_minus_infinity_and_a_nan_gradient(shown) -> None:
    logits = torch.tensor([0.0, 200.0])
    assert shown("unstable-composition", "Bad").log_likelihood(logits).tolist() == [-math.inf, 0.0]
    assert shown("unstable-composition", "Good").log_likelihood(logits).tolist() == [-200.0, 0.0]
    logits.requires_grad_()
    p = torch.softmax(logits, 0)
    (p * torch.log(p)).sum().backward()
    assert logits.grad.isnan().all()


def test_where_exp_overflows() -> None:
    for dtype, end in ((torch.float16, 11.09), (torch.float32, 88.72), (torch.bfloat16, 88.72)):
        exact = torch.tensor([end - 0.5, end + 0.5], dtype=torch.float64).to(dtype)
        assert exact.exp().isinf().tolist() == [False, True]
    assert torch.exp(torch.tensor(1 / 0.07)).item() == pytest.approx(1.6e6, rel=0.01)


def test_the_other_pairs_at_their_ends() -> None:
    large, small = torch.tensor(100.0), torch.tensor(5e-8)
    assert torch.log(torch.sigmoid(torch.tensor(-120.0))).item() == -math.inf
    assert F.logsigmoid(torch.tensor(-120.0)).item() == -120.0
    assert torch.sigmoid(torch.tensor([-88.0, -89.0])).gt(0).tolist() == [True, False]
    assert torch.log(torch.sigmoid(torch.tensor(-17.5).half())).item() == -math.inf
    both = torch.stack([large, large])
    assert torch.log(torch.exp(both).sum()).item() == math.inf > torch.logsumexp(both, 0).item()
    assert (torch.exp(both) / torch.exp(both).sum()).isnan().all()
    assert torch.log(1 + torch.exp(large)).item() == math.inf > F.softplus(large).item()
    assert (torch.log(1 + small).item(), torch.exp(small).item() - 1) == (0.0, 0.0)
    assert torch.log1p(small).item() == torch.expm1(small).item() == pytest.approx(5e-8)
    assert torch.log(1 + torch.tensor(4.8e-4).half()).item() == 0.0
