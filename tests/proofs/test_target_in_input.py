"""A model that is given its targets copies them, where nothing can be predicted."""

from __future__ import annotations

import torch
from torch import nn


def test_random_symbols_are_copied_within_150_steps(shown) -> None:
    losses = shown("target-in-input", "Bad").train()
    assert losses[0] > 2.5
    assert losses[-1] < 0.1


def test_with_the_shift_random_symbols_stay_what_they_are(shown) -> None:
    torch.manual_seed(0)
    model = shown("target-in-input", "Good").Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150):
        ids = torch.randint(16, (32, 13))
        loss = nn.functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() > 2.6


def test_with_the_shift_what_can_be_predicted_is_learned(shown) -> None:
    losses = shown("target-in-input", "Good").train()
    assert losses[-1] < losses[0] / 4
