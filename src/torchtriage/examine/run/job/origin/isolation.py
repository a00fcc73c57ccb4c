"""A pass that one rank repeats by itself must not reach the others: a collective that only one enters never ends."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

_TOGETHER = frozenset({"c10d", "_c10d_functional", "_c10d_functional_autograd", "c10d_functional", "_dtensor"})


def block_collectives() -> Any:
    """A context in which a collective raises RuntimeError before it begins, in a process that is in a group."""
    from torch import distributed

    if not distributed.is_available() or not distributed.is_initialized():
        return nullcontext()
    from torch.utils._python_dispatch import TorchDispatchMode

    class Alone(TorchDispatchMode):  # type: ignore[misc]  # torch's types are not followed
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.namespace in _TOGETHER:
                raise RuntimeError(f"it calls {func.name()}, in which other ranks take part")
            return func(*args, **(kwargs or {}))

    return Alone()


def is_sharded(module: Any) -> bool:
    """Whether parts of the module's parameters lie on other ranks."""
    return any(type(each).__name__ == "DTensor" for each in module.parameters())
