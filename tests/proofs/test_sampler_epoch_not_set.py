"""Without set_epoch every epoch has the order of the first."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset


@pytest.mark.parametrize(("section", "repeats"), [("Bad", True), ("Good", False)])
def test_the_second_epoch_repeats_the_order_of_the_first(shown, section: str, repeats: bool) -> None:
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    dataset = TensorDataset(torch.arange(100.0).unsqueeze(1) / 100, torch.zeros(100, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    order = torch.cat(shown("sampler-epoch-not-set", section).train(model, dataset, optimizer, 2, 2, 0))
    first, second = order.chunk(2)
    assert len(first) == 50
    assert torch.equal(first, second) == repeats
    common = set(first.flatten().tolist()) & set(second.flatten().tolist())
    assert len(common) == (50 if repeats else 23)
