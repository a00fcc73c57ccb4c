"""An evaluation in training mode is random, and leaves its traces in the model."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize(("section", "tracked"), [("Bad", 6), ("Good", 4)])
def test_batch_norm_learns_from_the_validation_data(shown, section: str, tracked: int) -> None:
    torch.manual_seed(0)
    batches = [(torch.randn(6, 8), torch.randint(3, (6,))) for _ in range(4)]
    model = shown("mode-left-in-train", section).fit(batches, batches[:2], epochs=1)
    assert model.body[1].num_batches_tracked.item() == tracked
    x = torch.randn(6, 8)
    assert torch.equal(model(x), model(x)) == (section == "Good")
