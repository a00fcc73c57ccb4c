"""The sign with which a loss that is never negative is differentiated, read off the graph."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from torchtriage.specialists.debugging_techniques.probes.ascent import _signed

WEIGHT = torch.linspace(-1, 1, 12).view(4, 3).requires_grad_()
X, Y, LABELS = torch.linspace(-2, 2, 32).view(8, 4), torch.linspace(1, -3, 24).view(8, 3), torch.arange(8) % 3


def out() -> Tensor:
    return X @ WEIGHT


def entropy() -> Tensor:
    return functional.cross_entropy(out(), LABELS)


def squared() -> Tensor:
    return ((out() - Y) ** 2).mean()


@pytest.mark.parametrize(
    ("make", "loss"),
    [
        pytest.param(squared, "Pow", id="a square by hand"),
        pytest.param(lambda: (Y - out()).square().sum(1).mean(), "Pow", id="the target first, summed"),
        pytest.param(lambda: (out() - Y).abs().mean(), "Abs", id="an absolute difference"),
        pytest.param(lambda: functional.l1_loss(out(), Y), "Abs", id="the L1 loss"),
        pytest.param(lambda: (out() - Y).norm(dim=1).mean(), "LinalgVectorNorm", id="a norm"),
        pytest.param(lambda: squared().sqrt(), "Pow", id="the root of the mean square"),
        pytest.param(lambda: entropy() + squared(), "NllLoss", id="a sum"),
        pytest.param(lambda: entropy() + 0.1 * squared(), "NllLoss", id="a weighted sum"),
        pytest.param(lambda: entropy() + squared() + functional.l1_loss(out(), Y), "NllLoss", id="three terms"),
    ],
)
def test_a_loss_and_minus_it_are_told_apart(make: Callable[[], Tensor], loss: str) -> None:
    plain, negated = make(), -make()
    assert _signed(plain.grad_fn, plain.item()) == (loss, False)
    assert _signed(negated.grad_fn, negated.item()) == (loss, True)


def test_a_minus_before_each_of_two_terms_is_one_before_both() -> None:
    negated = -entropy() - squared()
    assert _signed(negated.grad_fn, negated.item()) == ("NllLoss", True)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: -(out() ** 2).mean(), id="a variance that is to be large"),
        pytest.param(lambda: -((out() - X @ WEIGHT.detach().requires_grad_()) ** 2).mean(), id="two networks apart"),
        pytest.param(lambda: -((out() - out().mean(0)) ** 2).mean(), id="a spread around the mean"),
        pytest.param(lambda: -((out() - Y) ** 3).mean(), id="an odd power"),
        pytest.param(lambda: -(functional.log_softmax(out(), 1)[:, 0] * Y[:, 0]).mean(), id="a policy gradient"),
        pytest.param(lambda: entropy() - squared(), id="one term against another: an adversary"),
        pytest.param(lambda: 0.5 * squared() - entropy(), id="the same, weighted"),
        pytest.param(lambda: (((out() - Y) ** 2).mean(1) * Y[:, 0]).sum() / 8, id="a factor for each sample"),
        pytest.param(lambda: -functional.cosine_similarity(out(), Y).mean(), id="a similarity"),
    ],
)
def test_what_may_be_meant_to_be_large_has_no_sign(make: Callable[[], Tensor]) -> None:
    value = make()
    assert _signed(value.grad_fn, value.item()) == ("", False)
