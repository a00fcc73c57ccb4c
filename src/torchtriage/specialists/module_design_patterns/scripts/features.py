"""Features of named parts of a model, taken by hooks that always go again.

Copy `features`: a context manager that gives a dict, filled by every forward pass inside the block. A part that the
model does not have raises before anything is registered. `keep` says what is kept of an output: "detach" for reading
it, "clone" where the model goes on in place, "graph" where a loss is computed from it. Runs it on a small network
whose activation works in place, and prints for each part the shape and whether its feature is still as it came out
of it, with "detach" and with "clone", and how many hooks are left afterwards.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import torch
from torch import nn

KEEP: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "detach": lambda output: output.detach(),
    "clone": lambda output: output.detach().clone(),
    "graph": lambda output: output,
}


@contextmanager
def features(model: nn.Module, names: list[str], keep: str = "detach") -> Iterator[dict[str, torch.Tensor]]:
    """The latest output of each part of MODEL in NAMES (dotted, as in named_modules), after each forward pass."""
    parts = {name: model.get_submodule(name) for name in names}  # raises AttributeError for an unknown one
    found: dict[str, torch.Tensor] = {}

    def take(name: str, _part: nn.Module, _args: object, output: object) -> None:
        if not isinstance(output, torch.Tensor):
            raise TypeError(f"{name} gives {type(output).__name__}, not a tensor: name a part of it")
        found[name] = KEEP[keep](output)

    handles = []
    try:
        for name, part in parts.items():
            handles.append(part.register_forward_hook(partial(take, name)))
        yield found
    finally:
        for handle in handles:
            handle.remove()


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU(inplace=True), nn.Sequential(nn.Linear(8, 4), nn.ReLU(inplace=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", nargs="+", default=["0", "2.0", "2"], help="parts of the demo's network")
    given = parser.parse_args()
    torch.manual_seed(0)
    model, inputs = network().eval(), torch.randn(5, 8)
    for keep in ("detach", "clone"):
        with features(model, given.names, keep) as found, torch.no_grad():
            model(inputs)
        for name, feature in found.items():
            print(f"{keep:7} {name:4} {tuple(feature.shape)} smallest value {feature.min():.2f}")
    print(f"hooks left: {sum(len(each._forward_hooks) for each in model.modules())}")


if __name__ == "__main__":
    main()
