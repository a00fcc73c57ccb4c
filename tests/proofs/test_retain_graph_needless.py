"""A graph that is retained is still alive while the next step builds its own."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def most(train) -> int:
    """How many activations were alive at once during four steps of training."""
    alive, peak = 0, 0

    class Held:
        def __init__(self, tensor: torch.Tensor) -> None:
            nonlocal alive, peak
            self.tensor = tensor.detach()  # an output with its graph would hold itself
            alive += 1
            peak = max(peak, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    model = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(8)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = [(torch.randn(4, 8), torch.randn(4, 8)) for _ in range(4)]
    with torch.autograd.graph.saved_tensors_hooks(Held, lambda held: held.tensor):
        train(model, loader, optimizer)
    return peak


def test_two_graphs_are_alive_at_once(shown) -> None:
    bad, good = (most(shown("retain-graph-needless", section).train) for section in ("Bad", "Good"))
    assert bad / good == pytest.approx(2.0, abs=0.05)


def test_without_it_a_second_backward_raises() -> None:
    weight = torch.ones(2, requires_grad=True)
    loss = weight.exp().sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="a second time"):
        loss.backward()
