"""Labels that belong to other inputs leave the loss at ln(classes)."""

from __future__ import annotations

import math
from statistics import mean

import pytest
import torch
from torch import nn


def test_shuffled_apart_nothing_is_learned(shown) -> None:
    assert mean(shown("loss-at-chance", "Bad").train()[-80:]) == pytest.approx(math.log(4), rel=0.02)


def test_shuffled_together_the_loss_falls(shown) -> None:
    assert mean(shown("loss-at-chance", "Good").train()[-10:]) < 0.7


@pytest.mark.parametrize(("classes", "chance"), [(2, 0.693), (10, 2.303), (1000, 6.908)])
def test_a_guess_costs_the_logarithm_of_the_number_of_classes(classes: int, chance: float) -> None:
    loss = nn.functional.cross_entropy(torch.zeros(5, classes), torch.zeros(5, dtype=torch.long))
    assert loss.item() == pytest.approx(chance, abs=5e-4)
