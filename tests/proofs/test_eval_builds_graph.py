"""eval() leaves autograd on: activations are kept for every batch, and a list of outputs keeps them for all."""

from __future__ import annotations

import weakref

import torch
from torch import nn


def perceptron() -> nn.Module:
    return nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(8)))


def kept(evaluate, batches: int) -> int:
    """The most bytes of activations that autograd held at once during EVALUATE."""
    alive: dict[int, int] = {}
    most = 0

    class Held:
        def __init__(self, tensor: torch.Tensor) -> None:
            nonlocal most
            self.tensor, key = tensor.detach(), tensor.untyped_storage().data_ptr()
            if not isinstance(tensor, nn.Parameter) and tensor._base is None and key not in alive:
                alive[key] = tensor.untyped_storage().nbytes()
                weakref.finalize(self, alive.pop, key)
            most = max(most, sum(alive.values()))

    model, loader = perceptron(), [(torch.randn(32, 64), None) for _ in range(batches)]
    with torch.autograd.graph.saved_tensors_hooks(Held, lambda held: held.tensor):
        evaluate(model, loader)
    return most


def test_each_batch_keeps_its_activations_and_a_list_those_of_all(shown) -> None:
    evaluate = shown("eval-builds-graph", "Bad").evaluate
    one = kept(evaluate, 1)
    assert one == 73_728
    assert kept(evaluate, 4) == 4 * one


def test_under_no_grad_nothing_is_kept(shown) -> None:
    assert kept(shown("eval-builds-graph", "Good").evaluate, 4) == 0
