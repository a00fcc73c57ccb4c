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
