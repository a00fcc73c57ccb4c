"""The facts of one operator, measured by calling it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch_calls import Call, Maker, arguments
from torch_observe import Dispatched, Seen, called, derivative_of, gradient_of, shares, tensors
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


# What needs a device that may not be there, off the documentation.
_ELSEWHERE = {
    "cuda": Row("tensor", "maybe", "-", "kept", "same", "moves"),
    "xpu": Row("tensor", "maybe", "-", "kept", "same", "moves"),
    "pin_memory": Row("tensor", "maybe", "-", "?", "same"),
}


_OTHERS = (
    Maker(low=-2.0, high=2.0),
    Maker(is_strided=True),
    Maker(dtype=torch.float32),
    Maker(dtype=torch.float16),
    Maker(dtype=torch.bfloat16),
)
"""What an operator is given besides the first call."""
_WHOLE = (torch.int64, torch.bool)


def measured(home: str, name: str, function: Callable[..., Any], schemas: list[Any]) -> Row | None:
    """The row of a function, off its calls; None where none is accepted."""
    if home == "method" and name in _ELSEWHERE:
        return _ELSEWHERE[name]
    accepted = first_accepted(home, name, function, schemas)
    if accepted is None:
        return None
    make, first, is_graph = accepted
    more = [called(function, make, replace(each, is_graph=is_graph)) for each in _OTHERS]
    seen = [first, *(each for each in more if each is not None)]
    gradients = {gradient_of(each) for each in seen[:2]} if is_graph else {"cut"}
    traits = traits_of(function, make, first)
    row = Row(
        returns_of(function, make, first),
        writes=str(first.written[0]) if first.written else "-",
        gradient=next(each for each in ("kept", "zero", "none", "cut", "-") if each in gradients),
        traits=",".join(sorted(traits)) or "-",
    )
    if first.first is None:
        return row
    whole = [called(function, make, Maker(dtype=each)) for each in _WHOLE]
    where = memory([*seen, *(each for each in whole if each is not None)]) if first.given else "fresh"
    if where == "itself" and "sync" in traits:  # a copy where it comes from another device
        where = "maybe"
    return replace(row, memory=where, dtype=settled(dtype(seen, whole[0]), function, make, traits))


def gives_indices(function: Callable[..., Any], make: Call) -> bool:
    """Whether values come with their places, perhaps for one dimension only: max(dim=0)."""
    for one in (function, functools.partial(function, dim=0)):
        seen = called(one, make, Maker())
        if seen is not None and seen.returns == "tensors" and len(seen.value) == 2:
            return bool(seen.value[1].dtype == torch.int64)
    return False


def returns_of(function: Callable[..., Any], make: Call, first: Seen) -> str:
    """Either where a flag makes several tensors of one: max_pool2d(…, return_indices=True)."""
    for flag in ("return_indices", "return_inverse", "as_tuple") if first.returns == "tensor" else ():
        seen = called(functools.partial(function, **{flag: True}), make, Maker())
        if seen is not None and seen.returns != "tensor":
            return "either"
    return first.returns


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


def settled(found: str, function: Callable[..., Any], make: Call, traits: set[str]) -> str:
    """FOUND, or where a fixed dtype comes from: an argument, or the setting of the process."""
    if "factory" in traits and found in ("float32", "float64"):
        whole = called(function, lambda maker: tuple(map(_rounded, make(maker))), Maker())
        is_given = whole is not None and whole.first is not None and not whole.first.is_floating_point()
        return "given" if is_given else "default"
    given = make(Maker(dtype=torch.float32))  # whose tensors change, and others do not
    says = any(isinstance(each, torch.dtype) or getattr(each, "dtype", None) == torch.float64 for each in given)
    return "given" if says and found == "float64" else found


def _rounded(value: Any) -> Any:
    """VALUE with whole numbers."""
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return round(value) if isinstance(value, float) else value


def _dtype(seen: Seen) -> torch.dtype | None:
    return next((each.dtype for each in seen.given if each.is_floating_point()), None)


def traits_of(function: Callable[..., Any], make: Call, first: Seen) -> set[str]:
    has_tensors, is_tensor = bool(first.given), first.first is not None
    noted = Dispatched()
    called(function, make, Maker(is_graph=False), noted)
    work = [each for each in noted.tags if each]
    tags = set().union(*work)
    there = elsewhere_of(function, make) if has_tensors else ""
    found = {
        "factory": is_tensor and not has_tensors,
        "converts": is_tensor and not has_tensors and isinstance(make(Maker())[0], np.ndarray | list),
        "joins": first.returns == "tensor" and first.joined,
        "indices": has_tensors and gives_indices(function, make),
        "random": "nondeterministic_seeded" in tags,
        "moves": there == "moved" or function is torch.Tensor.to,  # where it is given a device
        "sync": bool(tags & _SYNCS) or isinstance(first.value, np.ndarray) or bool(there),
        "lowered": has_tensors and is_lowered(function, make),
        "scalar": is_tensor and has_tensors and first.first is not None and first.first.ndim == 0 < first.given[0].ndim,
        "pointwise": is_tensor and has_tensors and bool(work) and all("pointwise" in each for each in work),
        "reduction": len(work) == 1 and "reduction" in tags,
    }
    derived = derivative_of(function, make) if is_tensor and first.leaves else set()
    # a decomposition of a matrix of ones has poles, or not, by the last bits that the LAPACK of this machine computes
    derived = derived if found["pointwise"] else derived - {"pole0", "pole1"}
    return {trait for trait, holds in found.items() if holds} | derived


def is_lowered(function: Callable[..., Any], make: Call) -> bool:
    """Whether autocast computes it in half precision."""
    single = Maker(dtype=torch.float32, is_graph=False)
    plain = called(function, make, single)
    with torch.autocast("cpu", torch.bfloat16):
        low = called(function, make, single)
    if plain is None or low is None or plain.first is None or low.first is None:
        return False
    return (plain.first.dtype, low.first.dtype) == (torch.float32, torch.bfloat16)


@cache
def elsewhere() -> FakeTensorMode:
    """Makes tensors of any device without their data."""
    return FakeTensorMode()


def elsewhere_of(function: Callable[..., Any], make: Call) -> str:
    """What becomes of tensors of another device: "moved" to this one, or "needed", the values; "" for neither."""
    word = getattr(function, "__name__", "")
    with elsewhere():
        try:
            given = make(Maker(device="cuda", is_graph=False))
            is_method = function is getattr(torch.Tensor, word, None)  # which tensors without data may override
            result = getattr(given[0], word)(*given[1:]) if is_method else function(*given)
        except Exception as error:  # noqa: BLE001  a refusal, whatever its class
            is_needed = type(error).__name__ in ("DataDependentOutputException", "DynamicOutputShapeException")
            return "needed" if is_needed else ""
    is_there = any(one.device.type == "cuda" for each in given for one in tensors(each))
    return "moved" if is_there and any(each.device.type == "cpu" for each in tensors(result)[:1]) else ""
