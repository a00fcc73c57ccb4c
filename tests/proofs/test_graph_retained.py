"""Kept losses keep graph nodes alive, one set per step; detached ones keep none."""

from __future__ import annotations

import pytest
import torch
from torch import nn


def nodes(kept: list[torch.Tensor]) -> int:
    """How many different graph nodes the kept tensors hold alive."""
    seen: set[object] = set()
    waiting = [tensor.grad_fn for tensor in kept]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [parent for parent, _ in node.next_functions]
    return len(seen)


def after(train, steps: int) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    loader = [(torch.randn(2, 4), torch.randn(2, 1)) for _ in range(steps)]
    return train(model, loader, torch.optim.SGD(model.parameters(), lr=0.01))


def test_the_graph_that_is_kept_alive_grows_with_every_step(shown) -> None:
    train = shown("graph-retained", "Bad").train
    ten, twenty = nodes(after(train, 10)), nodes(after(train, 20))
    assert ten > 10
    assert twenty > 1.8 * ten


def test_detached_losses_keep_no_graph(shown) -> None:
    assert nodes(after(shown("graph-retained", "Good").train, 20)) == 0


def saved(retain: bool) -> int:
    """How many activations stay alive with a kept loss after its backward."""
    alive: list[int] = []

    def pack(tensor: torch.Tensor) -> object:
        alive.append(1)
        return _Held(tensor, alive)

    weight = torch.randn(8, 8, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda held: held.tensor):
        loss = (torch.randn(4, 8) @ weight).relu().pow(2).mean()
    loss.backward(retain_graph=retain)
    assert loss.grad_fn is not None
    return len(alive)


class _Held:
    def __init__(self, tensor: torch.Tensor, alive: list[int]) -> None:
        self.tensor, self.alive = tensor, alive

    def __del__(self) -> None:
        self.alive.pop()


@pytest.mark.parametrize(("retain", "held"), [(False, False), (True, True)])
def test_backward_frees_the_activations_unless_it_is_told_to_retain_them(retain: bool, held: bool) -> None:
    assert (saved(retain) > 0) == held
