"""No graph is kept, one read by the host for each epoch and one for the curve, and the loss falls."""

from typing import Any

import torch
from torch import nn

from torchtriage_evals.programs.seen import Held, Operations


def check(program: Any) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
    batches = [(torch.randn(8, 6), torch.randint(3, (8,))) for _ in range(5)]
    with Held() as held, Operations() as seen:
        curve, scores = program.train(model, batches, batches, 6)
        assert held.now == 0, f"{held.now} tensors are kept for a backward"
    assert seen.counts["_local_scalar_dense"] <= 8, f"{seen.counts['_local_scalar_dense']} reads by the host"
    assert len(curve) == 30
    assert len(scores) == 6
    assert sum(curve[-5:]) < sum(curve[:5]), "the loss does not fall"
    assert scores[-1] > 0.4, f"scores {scores}"
