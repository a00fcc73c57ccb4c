"""Which tensors live on from step to step, and who holds them: a census between steps.

Copy `census` and `holders` into the loop that grows: print what `census` gives after one step and after a hundred,
and `holders` of the newest tensor of the kind that became more. A tensor that only the autograd graph holds is not
seen by Python: then look for the output or loss that holds the graph. Runs a small training that keeps its outputs
and prints the kind that grew, by how much, and the name of the list that holds it.
"""

from __future__ import annotations

import argparse
import gc
from collections import Counter

import torch
from torch import nn


def tensors() -> list[torch.Tensor]:
    """Every tensor that Python can reach."""
    return [each for each in gc.get_objects() if issubclass(type(each), torch.Tensor)]


def kind(tensor: torch.Tensor) -> str:
    graph = "with a graph" if tensor.grad_fn is not None else "without a graph"
    return f"{tuple(tensor.shape)} {tensor.dtype} {tensor.device} {graph}"


def census() -> Counter[str]:
    """How many tensors of each kind are alive, once cycles are collected."""
    gc.collect()
    return Counter(kind(each) for each in tensors())


def holders(tensor: torch.Tensor) -> list[str]:
    """What holds TENSOR: containers by the name under which something knows them, else by their type."""
    found = []
    for holder in gc.get_referrers(tensor):
        if isinstance(holder, (list, dict, tuple, set)):
            names = [
                name
                for scope in gc.get_referrers(holder)
                if isinstance(scope, dict)
                for name, value in scope.items()
                if value is holder
            ]
            found.append(f"{type(holder).__name__} {'/'.join(map(str, names)) or 'without a name'}")
        else:
            found.append(type(holder).__name__)
    return found


kept: list[torch.Tensor] = []


def train(model: nn.Module, steps: int, keep: bool) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        output = model(torch.randn(8, 16))
        output.square().mean().backward()
        optimizer.step()
        if keep:
            kept.append(output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--healthy", action="store_true", help="the training keeps nothing")
    given = parser.parse_args()
    model = nn.Linear(16, 16)
    train(model, 1, keep=not given.healthy)
    before = census()
    train(model, given.steps, keep=not given.healthy)
    grown = census() - before
    if not grown:
        print("no kind of tensor became more")
    for name, count in grown.most_common():
        newest = next(each for each in reversed(tensors()) if kind(each) == name)
        print(f"{count} more of {name}, held by {', '.join(holders(newest))}")


if __name__ == "__main__":
    main()
