"""Layers of a model that is given are tied again after it was moved."""

from torch import nn


def tie_again(module: nn.Module, groups: list) -> nn.Module:
    for group in groups:
        first = find(module, group[0])
        for path in group[1:]:
            put(module, path, first)
    return module


def find(module: nn.Module, path: str) -> nn.Module:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def put(module: nn.Module, path: str, value: nn.Module) -> None:
    *above, last = path.split(".")
    for name in above:
        module = getattr(module, name)
    setattr(module, last, value)
