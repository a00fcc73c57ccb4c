"""What nll_loss and binary cross entropy make of inputs that they do not expect."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn


def test_on_logits_the_loss_falls_without_end(shown) -> None:
    assert shown("wrong-loss-input", "Bad").losses()[-1] < -10


def test_on_log_probabilities_it_starts_near_a_guess_and_falls(shown) -> None:
    losses = shown("wrong-loss-input", "Good").losses()
    assert losses[0] == pytest.approx(math.log(4), rel=0.1)
    assert 0 <= losses[-1] < 0.5


def test_on_probabilities_it_is_minus_their_mean() -> None:
    even = torch.full((6, 4), 0.25)
    assert nn.functional.nll_loss(even, torch.arange(6) % 4).item() == pytest.approx(-0.25)


def test_a_target_of_minus_one_has_no_least_loss() -> None:
    loss = [
        nn.functional.binary_cross_entropy_with_logits(torch.tensor([x]), torch.tensor([-1.0])) for x in (0.0, -50.0)
    ]
    assert loss[1] < -49 < loss[0]


def test_a_logit_that_a_relu_cuts_off_gets_no_gradient_and_the_loss_of_the_other_classes_stays() -> None:
    """However sure the network is of one class, those that are cut off keep their share: log(1 + 3 / e^z) of four."""
    raw = torch.tensor([[2.0, -1.0, -2.0, -3.0]], requires_grad=True)
    nn.functional.cross_entropy(torch.relu(raw), torch.tensor([0])).backward()
    assert raw.grad is not None
    assert raw.grad[0, 1:].tolist() == [0.0, 0.0, 0.0]


def test_a_relu_on_the_logits_ends_at_a_higher_loss() -> None:
    def last(cut: nn.Module) -> float:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4), cut)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        losses = []
        for _ in range(80):
            x = torch.randn(64, 8)
            loss = nn.functional.cross_entropy(model(x), x[:, :4].argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return sum(losses[-10:]) / 10

    assert last(nn.ReLU()) > 1.2 * last(nn.Identity())
