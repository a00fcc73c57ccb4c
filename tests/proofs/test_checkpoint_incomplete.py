"""Weights alone do not resume a training: it goes elsewhere; with all parts it is bitwise the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn


def weights(train, path: Path, stretches: list[int]) -> torch.Tensor:
    """The weights after training up to each of STRETCHES epochs in processes of their own."""
    torch.manual_seed(0)
    inputs = torch.randn(64, 4)
    loader = [(part, part.sum(1, keepdim=True)) for part in inputs.split(16)]
    start = nn.Linear(4, 1).state_dict()
    for epochs in stretches:
        model = nn.Linear(4, 1)
        model.load_state_dict(start)
        train(model, loader, epochs, str(path))
    return model.weight.detach()


@pytest.mark.parametrize(("section", "same"), [("Bad", False), ("Good", True)])
def test_a_resumed_training_ends_where_the_uninterrupted_one_does(
    shown, section: str, same: bool, tmp_path: Path
) -> None:
    train = shown("checkpoint-incomplete", section).train
    whole = weights(train, tmp_path / "whole.pt", [4])
    resumed = weights(train, tmp_path / "parts.pt", [2, 4])
    assert torch.equal(whole, resumed) == same


def test_the_first_step_of_a_fresh_adam_is_as_large_as_at_the_beginning() -> None:
    model = nn.Linear(1, 1, bias=False)
    seasoned = torch.optim.Adam(model.parameters(), lr=0.1)
    sizes = []
    for gradient, optimizer in [(1.0, seasoned)] * 50 + [(1e-3, seasoned), (1e-3, None)]:
        fresh = optimizer or torch.optim.Adam(model.parameters(), lr=0.1)
        before = model.weight.item()
        model.weight.grad = torch.full_like(model.weight, gradient)
        fresh.step()
        sizes.append(abs(model.weight.item() - before))
    assert sizes[-1] == pytest.approx(sizes[0], rel=0.01)
    assert sizes[-1] > 1.1 * sizes[-2]
