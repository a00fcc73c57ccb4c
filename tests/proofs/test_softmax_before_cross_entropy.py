"""Softmax twice leaves a floor under the loss."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F


def test_a_model_that_gives_probabilities_stays_above_the_floor(shown) -> None:
    torch.manual_seed(0)
    x, y = torch.eye(3).repeat(8, 1), torch.arange(3).repeat(8)
    assert shown("softmax-before-cross-entropy", "Bad").train(x, y) > 0.55
    assert shown("softmax-before-cross-entropy", "Good").train(x, y) < 0.01


@pytest.mark.parametrize(("classes", "floor"), [(2, 0.31), (3, 0.55), (10, 1.46)])
def test_the_best_possible_loss_of_certain_probabilities(classes: int, floor: float) -> None:
    certain = torch.eye(classes)[:1]
    assert F.cross_entropy(certain, torch.tensor([0])).item() == pytest.approx(floor, abs=0.005)
    assert F.cross_entropy(1e4 * certain, torch.tensor([0])).item() == pytest.approx(0, abs=1e-6)


def test_a_sigmoid_twice_gives_class_0_no_loss_below_ln_2() -> None:
    logits = torch.linspace(-50, 50, 1001)
    loss = F.binary_cross_entropy_with_logits(logits.sigmoid(), torch.zeros(1001), reduction="none")
    assert loss.min().item() == pytest.approx(math.log(2), abs=1e-6)


def test_log_softmax_twice_changes_nothing() -> None:
    torch.manual_seed(0)
    once = F.log_softmax(torch.randn(64, 10), dim=1)
    torch.testing.assert_close(F.log_softmax(once, dim=1), once)
