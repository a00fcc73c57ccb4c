"""The model ends with the bits of its best epoch, also of buffers."""

from typing import Any

import torch
from torch import nn


def check(program: Any) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
    seen: list[dict[str, torch.Tensor]] = []

    def score(given: nn.Module, epoch: int) -> float:
        seen.append({name: each.detach().clone() for name, each in given.state_dict().items()})
        return (0.1, 0.3, 0.9, 0.4, 0.2, 0.1)[epoch]

    assert program.train(model, torch.randn(16, 4), torch.randn(16, 1), score) == 0.9
    assert len(seen) == 6, f"{len(seen)} epochs"
    apart = [name for name, each in model.state_dict().items() if not torch.equal(each, seen[2][name])]
    assert not apart, f"not those of the best epoch: {apart}"
    moved = [name for name in seen[2] if not torch.equal(seen[2][name], seen[5][name])]
    assert len(moved) >= 6, "training stopped with the best epoch"
