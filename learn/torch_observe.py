"""One call of an operator, and what its derivative is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch_calls import Call, Maker


class Dispatched(TorchDispatchMode):  # type: ignore[misc]  # torch is not followed
    """Notes which operators are dispatched."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[set[str]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.tags.append({str(tag).rpartition(".")[2] for tag in func.tags})
        return func(*args, **(kwargs or {}))


def tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in VALUE, one level deep."""
    parts = value if isinstance(value, list | tuple) else [value]
    return [each for each in parts if isinstance(each, torch.Tensor)]


def kind(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return "tensor"
    if isinstance(value, list | tuple) and value and len(tensors(value)) == len(value):
        return "tensors"
    return "nothing" if value is None else "value"


def shares(one: torch.Tensor, given: list[torch.Tensor]) -> bool:
    if one.layout != torch.strided or not one.numel():
        return False
    return any(
        each.layout == torch.strided and each.untyped_storage().data_ptr() == one.untyped_storage().data_ptr()
        for each in given
    )


@dataclass
class Seen:
    """One call."""

    returns: str
    first: torch.Tensor | None
    given: list[torch.Tensor]
    written: list[int]
    value: Any
    leaves: list[torch.Tensor]
    joined: bool


def called(function: Callable[..., Any], make: Call, maker: Maker, mode: Any = None) -> Seen | None:
    """What FUNCTION returns for what MAKE gives it, under MODE; None where it refuses that."""
    try:
        torch.default_generator.manual_seed(0)  # that of other devices costs most of the time
        maker = replace(maker, leaves=[])
        values = make(maker)
        given = [one for each in values for one in tensors(each)]
        before = [each._version for each in given]
        with mode or contextlib.nullcontext():
            result = function(*values)
        written = [place for place, each in enumerate(given) if each._version != before[place]]
    except Exception:  # noqa: BLE001  a refusal, whatever its class
        return None
    found = tensors(result)
    is_joined = bool(values) and isinstance(values[0], list) and bool(tensors(values[0]))
    return Seen(kind(result), found[0] if found else None, given, written, result, maker.leaves, is_joined)


def gradient_of(seen: Seen) -> str:
    """kept, cut, zero or none (torch has no derivative) for one call; - where no graph could be kept."""
    if not seen.leaves:
        return "-"
    outputs = [each for each in tensors(seen.value) if each.requires_grad]
    if not outputs:
        return "cut"
    try:
        found = torch.autograd.grad(sum(map(weighted, outputs)), seen.leaves, allow_unused=True)
    except (RuntimeError, NotImplementedError) as error:
        return "none" if "not implemented" in str(error) or "does not require grad" in str(error) else "kept"
    return "kept" if any(each is not None and bool((each != 0).any()) for each in found) else "zero"


def weighted(output: torch.Tensor) -> torch.Tensor:
    """A sum of the elements of OUTPUT, each with another weight: the plain sum of a softmax has no gradient."""
    dense = torch.view_as_real(output) if output.is_complex() else output
    dense = dense.to_dense() if dense.layout != torch.strided else dense
    weights = torch.linspace(0.3, 1.7, max(dense.numel(), 1), dtype=torch.float64)[: dense.numel()]
    return (dense.double() * weights.view(dense.shape).cos()).sum()


def derivative_of(function: Callable[..., Any], make: Call) -> set[str]:
    """Whether the derivative is computed from the result, and where it is not finite."""
    found = set()
    seen = called(function, make, Maker())
    if seen is not None and len(seen.given) == 1 and not seen.written and seen.first is not None:
        try:
            seen.first.add_(0.5)
            torch.autograd.grad(sum(map(weighted, tensors(seen.value))), seen.leaves, allow_unused=True)
        except RuntimeError as error:
            found |= {"saves"} if "modified by an inplace" in str(error) else set()
    for place in (0, 1):
        at = called(function, make, Maker(low=place, high=place))
        if at is not None and len(at.leaves) == 1 and at.first is not None and at.first.requires_grad:
            found |= {f"pole{place}"} if has_pole(at.first, at.leaves) else set()
    return found


def has_pole(result: torch.Tensor, leaves: list[torch.Tensor]) -> bool:
    """Whether a gradient is not finite."""
    try:
        given = torch.autograd.grad(weighted(result), leaves, allow_unused=True)[0]
    except RuntimeError:
        return False
    return given is not None and not bool(given.isfinite().all())
