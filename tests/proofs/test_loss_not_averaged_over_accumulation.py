"""Four batches that are added up move SGD four times as far as one batch of the same samples."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def moved(train, batches: int, every: int) -> torch.Tensor:
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    data = zip(torch.randn(8, 4).chunk(batches), torch.randn(8, 1).chunk(batches), strict=True)
    before = model.weight.detach().clone()
    train(model, list(data), torch.optim.SGD(model.parameters(), lr=0.1), every)
    return model.weight.detach() - before


@pytest.mark.parametrize(("section", "factor"), [("Bad", 4.0), ("Good", 1.0)])
def test_the_step_against_that_of_one_batch(shown, section, factor) -> None:
    train = shown("loss-not-averaged-over-accumulation", section).train
    assert torch.allclose(moved(train, 4, 4), factor * moved(train, 1, 1), rtol=1e-4)
