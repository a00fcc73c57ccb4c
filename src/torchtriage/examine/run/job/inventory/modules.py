"""Root modules, the names of what is below them, and what was there before the watch."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Roots:
    """Root modules that are alive, by identity (a module may define equality), and the names of what is below them."""

    def __init__(self) -> None:
        self.names: dict[int, tuple[weakref.ref[Any], str]] = {}
        self._modules: dict[int, weakref.ref[Any]] = {}

    def add(self, module: Any) -> None:
        self._modules[id(module)] = weakref.ref(module)

    def __contains__(self, module: Any) -> bool:
        kept = self._modules.get(id(module))
        return kept is not None and kept() is module

    def __iter__(self) -> Iterator[Any]:
        return (module for kept in list(self._modules.values()) if (module := kept()) is not None)


def name_of(part: Any, roots: Roots) -> str | None:
    """The path of a module or parameter below its root; the root's class for the root; None for what is unknown."""
    kept = roots.names.get(id(part))
    if kept is None or kept[0]() is not part:
        roots.names = {
            id(each): (weakref.ref(each), path or type(each).__name__)
            for root in roots
            for path, each in (*root.named_modules(), *root.named_parameters())
        }
        kept = roots.names.get(id(part))
    return kept[1] if kept is not None and kept[0]() is part else None


def live_objects() -> list[weakref.ref[Any]]:
    """The modules and optimizers that the garbage collector knows; none is asked anything, not even for its class."""
    import gc

    import torch

    kinds = (torch.nn.Module, torch.optim.Optimizer)
    return [weakref.ref(each) for each in gc.get_objects() if issubclass(type(each), kinds)]
