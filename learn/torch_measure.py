"""The facts of one operator, measured by calling it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch_calls import Call, Maker, arguments
from torch_samples import CALLS

_SYNCS = {"data_dependent_output", "dynamic_output_shape"}
"""Tags of what the host has to wait for: its result, or the size of it, depends on data."""


@dataclass(frozen=True)
class Row:
    """What is known of one name in one home, as examine/source/torch_api/operators.py defines it."""

    returns: str = "value"
    memory: str = "-"
    writes: str = "-"
    gradient: str = "-"
    dtype: str = "-"
    traits: str = "-"

    def cells(self) -> tuple[str, ...]:
        return self.returns, self.memory, self.writes, self.gradient, self.dtype, self.traits


# What needs a device that is not there, off the documentation.
_ELSEWHERE = {
    "cuda": Row("tensor", "maybe", "-", "kept", "same"),
    "xpu": Row("tensor", "maybe", "-", "kept", "same"),
    "pin_memory": Row("tensor", "maybe", "-", "cut", "same"),
}


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
    return Seen(kind(result), found[0] if found else None, given, written, result, maker.leaves)


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


def measured(home: str, name: str, function: Callable[..., Any], schemas: list[Any]) -> Row | None:
    """The row of a function, off its calls; None where none is accepted."""
    accepted = first_accepted(home, name, function, schemas)
    if accepted is None:
        return _ELSEWHERE.get(name) if home == "method" else None
    make, first, is_graph = accepted
    others = [Maker(low=-2.0, high=2.0), Maker(is_strided=True), Maker(dtype=torch.float32)]
    more = [called(function, make, replace(each, is_graph=is_graph)) for each in others]
    seen = [first, *(each for each in more if each is not None)]
    gradients = {gradient_of(each) for each in seen[:2]} if is_graph else {"cut"}
    traits = traits_of(function, make, first)
    row = Row(
        first.returns,
        writes=str(first.written[0]) if first.written else "-",
        gradient=next(each for each in ("kept", "zero", "none", "cut", "-") if each in gradients),
        traits=",".join(sorted(traits)) or "-",
    )
    if first.first is None:
        return row
    where = memory(seen) if first.given else "fresh"
    if where == "itself" and "sync" in traits:  # a copy where it comes from another device
        where = "maybe"
    whole = called(function, make, Maker(dtype=torch.int64))
    return replace(row, memory=where, dtype=settled(dtype(seen, whole), make, traits))


def first_accepted(
    home: str, name: str, function: Callable[..., Any], schemas: list[Any]
) -> tuple[Call, Seen, bool] | None:
    """The first call that FUNCTION accepts, and whether it does so for tensors of a graph."""
    bare = name.rstrip("_")
    sample = next((CALLS[each] for each in (f"{home}.{name}", name, f"{home}.{bare}", bare) if each in CALLS), None)
    tries = [sample] if sample else [*itertools.islice(arguments(home, function, schemas), 90)]
    for make in tries:
        seen = called(function, make, Maker())
        if seen is not None:
            return make, seen, True
    plain = called(function, sample, Maker(is_graph=False)) if sample else None  # numpy() refuses what has a graph
    return (sample, plain, False) if sample and plain else None


def memory(seen: list[Seen]) -> str:
    """fresh, alias or itself where all calls agree, maybe where they do not."""
    found = set()
    for each in seen:
        if each.first is not None:
            is_same = any(each.first is one for one in each.given)
            found.add("itself" if is_same else "alias" if shares(each.first, each.given) else "fresh")
    return found.pop() if len(found) == 1 else "maybe"


def dtype(seen: list[Seen], whole: Seen | None) -> str:
    """The class of the result's dtype: same, float (of integers, too), or always that dtype."""
    floats = [(one, each.first.dtype) for each in seen if each.first is not None for one in (_dtype(each),)]
    results = {result for _, result in floats}
    if len(results) == 1 and not (len({given for given, _ in floats}) == 1 and results == {floats[0][0]}):
        return str(results.pop()).removeprefix("torch.")
    if all(result.is_complex for _, result in floats):
        return "complex"
    of_whole = whole.first.dtype if whole is not None and whole.first is not None else None
    return "float" if of_whole is not None and of_whole.is_floating_point else "same"


def settled(found: str, make: Call, traits: set[str]) -> str:
    """FOUND, or where a fixed dtype comes from: an argument, or the setting of the process."""
    if "factory" in traits and found in ("float32", "float64"):
        return "default"
    given = make(Maker(dtype=torch.float32))  # whose tensors change, and others do not
    says = any(isinstance(each, torch.dtype) or getattr(each, "dtype", None) == torch.float64 for each in given)
    return "given" if says and found == "float64" else found


def _dtype(seen: Seen) -> torch.dtype | None:
    return next((each.dtype for each in seen.given if each.is_floating_point()), None)


def traits_of(function: Callable[..., Any], make: Call, first: Seen) -> set[str]:
    has_tensors, is_tensor, value = bool(first.given), first.first is not None, first.value
    found = {"factory"} if is_tensor and not has_tensors else set()
    noted = Dispatched()
    called(function, make, Maker(is_graph=False), noted)
    work = [each for each in noted.tags if each]
    tags = set().union(*work)
    if "nondeterministic_seeded" in tags:
        found.add("random")
    if tags & _SYNCS or isinstance(value, np.ndarray) or (has_tensors and fetches(function, make)):
        found.add("sync")
    if is_tensor and has_tensors and work and all("pointwise" in each for each in work):
        found.add("pointwise")
    if len(work) == 1 and "reduction" in tags:
        found.add("reduction")
    return found


@cache
def elsewhere() -> FakeTensorMode:
    """Makes tensors of any device without their data."""
    return FakeTensorMode()


def fetches(function: Callable[..., Any], make: Call) -> bool:
    """Whether what a call on tensors of another device returns is on this one, or cannot be had without their data."""
    word = getattr(function, "__name__", "")
    with elsewhere():
        try:
            given = make(Maker(device="cuda", is_graph=False))
            is_method = function is getattr(torch.Tensor, word, None)  # which tensors without data may override
            result = getattr(given[0], word)(*given[1:]) if is_method else function(*given)
        except Exception as error:  # noqa: BLE001  a refusal, whatever its class
            return type(error).__name__ in ("DataDependentOutputException", "DynamicOutputShapeException")
    is_there = any(one.device.type == "cuda" for each in given for one in tensors(each))
    return is_there and any(each.device.type == "cpu" for each in tensors(result)[:1])
