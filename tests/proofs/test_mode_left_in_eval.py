"""After the first evaluation nothing is dropped and no statistics move."""

from __future__ import annotations

import pytest
import torch
from torch import nn


@pytest.mark.parametrize(("section", "tracked"), [("Bad", 4), ("Good", 12)])
def test_statistics_move_only_in_training_mode(shown, section: str, tracked: int) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    batches = [(torch.randn(6, 4), torch.randint(3, (6,))) for _ in range(4)]
    shown("mode-left-in-eval", section).train(
        model, batches, batches[:1], torch.optim.SGD(model.parameters(), lr=0.1), epochs=3
    )
    assert model[1].num_batches_tracked.item() == tracked
