"""Weights are those of training on the whole batches."""

from typing import Any

import torch
from torch import nn


def check(program: Any) -> None:
    torch.manual_seed(0)
    pieces = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(8)]
    model, other = nn.Linear(3, 1), nn.Linear(3, 1)
    other.load_state_dict(model.state_dict())
    _, updates = program.train(model, pieces)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    for start in (0, 4):
        inputs, targets = (torch.cat([each[side] for each in pieces[start : start + 4]]) for side in (0, 1))
        optimizer.zero_grad()
        nn.functional.mse_loss(other(inputs), targets).backward()
        optimizer.step()
    assert updates == 2, f"{updates} updates for eight pieces"
    assert torch.allclose(model.weight, other.weight, atol=1e-6), "other weights than those of the whole batches"
