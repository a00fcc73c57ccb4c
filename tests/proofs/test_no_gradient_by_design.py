"""What reaches the model through round and argmax."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def moved(train) -> float:
    """How far one step of SGD moves the weights."""
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    before = model.weight.detach().clone()
    train(model, [(torch.randn(8, 4), torch.full((8,), 3.0))], torch.optim.SGD(model.parameters(), lr=0.1))
    return (model.weight.detach() - before).abs().max().item()


def test_through_round_the_model_stays_as_it_is(shown) -> None:
    assert moved(shown("no-gradient-by-design", "Bad").train) == 0.0


def test_before_it_the_model_learns(shown) -> None:
    assert moved(shown("no-gradient-by-design", "Good").train) > 0.01


@pytest.mark.parametrize(
    "cut", [lambda y: y.argmax(1).float(), lambda y: (y > 0).float().mean(1), lambda y: y.max(1)[1].float()]
)
def test_argmax_and_comparisons_have_no_gradient_at_all(cut) -> None:
    loss = nn.functional.mse_loss(cut(nn.Linear(4, 3)(torch.ones(2, 4))), torch.ones(2))
    with pytest.raises(RuntimeError, match="does not require grad"):
        loss.backward()


def test_a_straight_through_estimator_passes_the_gradient_on() -> None:
    x = torch.tensor([0.3, 1.8], requires_grad=True)
    (x + (x.round() - x).detach()).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1.0, 1.0]
