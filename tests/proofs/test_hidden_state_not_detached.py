"""A state that is carried with its graph makes the second backward raise."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def run(train) -> None:
    model = nn.GRU(4, 4)
    loader = [(torch.randn(3, 2, 4), torch.randn(3, 2, 4)) for _ in range(3)]
    train(model, loader, torch.optim.SGD(model.parameters(), lr=0.1))


def test_the_second_step_raises(shown) -> None:
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        run(shown("hidden-state-not-detached", "Bad").train)


def test_a_detached_state_goes_on(shown) -> None:
    run(shown("hidden-state-not-detached", "Good").train)


def test_a_retained_graph_raises_because_the_weights_have_changed() -> None:
    model = nn.GRU(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    out, hidden = model(torch.randn(3, 2, 4))
    out.sum().backward(retain_graph=True)
    optimizer.step()
    out, hidden = model(torch.randn(3, 2, 4), hidden)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward(retain_graph=True)
