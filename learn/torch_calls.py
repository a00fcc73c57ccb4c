"""With what an operator can be called: tiny tensors and numbers, guessed from types and names of its parameters."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

Call = Callable[["Maker"], tuple[Any, ...]]


@dataclass
class Maker:
    """Makes the tensors of one call: of floats from LOW to HIGH, part of a graph unless told otherwise."""

    dtype: torch.dtype = torch.float64
    low: float = 0.1
    high: float = 0.9
    is_strided: bool = False
    device: str = "cpu"
    is_graph: bool = True
    made: int = 0
    """Counts the tensors, so that two of the same shape differ."""
    leaves: list[torch.Tensor] = field(default_factory=list)
    """What the tensors that were made are computed from."""

    def floats(self, *shape: int) -> torch.Tensor:
        if self.device != "cpu":  # without data
            return torch.ones(shape, dtype=self.dtype, device=self.device, requires_grad=self.is_graph)
        count = torch.Size(shape).numel()
        values = torch.linspace(self.low, self.high, max(count, 1), dtype=torch.float64)[:count]
        values = values.roll(self.made)
        self.made += 1
        if not self.dtype.is_floating_point:
            return (values * 3).abs().to(self.dtype).view(shape)
        leaf = values.to(self.dtype).view(shape)
        if not self.is_graph:
            return leaf
        leaf.requires_grad_()
        made = leaf * 1
        if self.is_strided and len(shape) > 1:
            made = made.mT.contiguous().mT
        elif self.is_strided and shape:
            made = torch.stack([made] * 2, 1)[:, 0]
        self.leaves.append(leaf)
        return made

    def whole(self, *shape: int, below: int = 3) -> torch.Tensor:
        count = torch.Size(shape).numel()
        return (torch.arange(count, device=self.device) % below).view(shape)

    def mask(self, *shape: int) -> torch.Tensor:
        return self.whole(*shape, below=2) == 1


_SHAPES = ((3, 3), (3,), (2, 3, 8, 8), (3, 3, 3), (2, 3, 8), (2, 3, 8, 8, 8), ())
_WHOLE = {"index", "indices", "indices_or_sections", "target_lengths", "input_lengths"}
_MASKS = {"mask", "condition"}
_CHOICES: dict[str, list[Any]] = {
    "number": [2, 1, 0.5],
    "int": [1, 0, 2],
    "SymInt": [1, 0, 2],
    "float": [0.5, 2.0],
    "bool": [False],
    "List[int]": [[3, 3], [1], [0, 1], [2], [1, 1], [0, 2, 1], [3], []],
    "List[float]": [[0.5, 0.5]],
    "str": ["mean", "floor", "sum"],
    "Device": ["cpu"],
    "ScalarType": [torch.float64],
}
_NAMED: dict[str, list[Any]] = {
    "kernel_size": [2],
    "output_size": [2, (2, 2), (2, 2, 2)],
    "size": [(3, 3), (9,), (2, 2)],
    "dtype": [torch.float64],
    "equation": ["ij,jk->ik"],
    "pad": [(1, 1)],
    "negative_slope": [0.1],
    "lambd": [0.5],
    "p": [0.5, 2.0],
    "num_classes": [3],
    "upscale_factor": [1],
    "downscale_factor": [2],
    "groups": [1],
    "num_groups": [1],
    "normalized_shape": [(3,)],
    "threshold": [0.5],
    "value": [0.5],
    "func": [torch.sin],
}
_NO_TENSORS = {"kernel_size", "output_size", "pad", "normalized_shape", "func", "equation", "size", "num_classes"}
"""Parameters of functions in Python, which have no types."""


def arguments(home: str, function: Callable[..., Any], schemas: list[Any]) -> Iterator[Call]:
    """Ways to call the operator, those likeliest to be accepted first."""
    forms = [*_forms(home, function, schemas)]
    for shape in _SHAPES:
        for is_whole in (False, True):
            for form in forms:
                choices = [_choices(kind, word, shape, is_whole) for kind, word in form]
                yield from map(_call, itertools.islice(itertools.product(*choices), 12))


def _forms(home: str, function: Callable[..., Any], schemas: list[Any]) -> Iterator[list[tuple[str, str]]]:
    """The types and names of parameters that are needed, for each overload."""
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        signature = None
    is_python = signature is not None and not all(
        each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in signature.parameters.values()
    )
    if is_python and signature is not None:
        yield [
            (_kind_of(each.name, each.annotation), each.name)
            for each in signature.parameters.values()
            if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
    for schema in sorted(schemas, key=lambda each: bool(each.overload_name)):
        needed = [each for each in schema.arguments if not each.has_default_value() and not each.kwarg_only]
        yield [(str(each.type), each.name) for each in needed]
    if home != "functional":
        yield [("Tensor", "self")]
        yield [("Tensor", "self"), ("Tensor", "other")]
        yield [("Tensor", "self"), ("int", "dim")]
        yield [("Tensor", "self"), ("List[int]", "size")]
        yield []


def _kind_of(word: str, note: Any) -> str:
    text = str(getattr(note, "__name__", note))
    known = {"int": "int", "float": "float", "bool": "bool", "str": "str"}
    if text in known:
        return known[text]
    if word == "tensors" or ("ist[" in text and "ensor" in text):
        return "List[Tensor]"
    return "Tensor"


def _choices(kind: str, word: str, shape: tuple[int, ...], is_whole: bool) -> list[Callable[[Maker], Any]]:
    if word in _NAMED and (kind != "Tensor" or word in _NO_TENSORS):
        return [_constant(each) for each in _NAMED[word]]
    if kind == "List[Tensor]":
        return [lambda maker: [maker.floats(*shape), maker.floats(*shape)]]
    if kind == "Tensor":
        return _tensors(word, shape, is_whole)
    plain = "" if "Tensor" in kind else kind.removeprefix("Optional[").removesuffix("]")
    return [_constant(each) for each in _CHOICES.get(plain, [None])]


def _tensors(word: str, shape: tuple[int, ...], is_whole: bool) -> list[Callable[[Maker], Any]]:
    if word in _WHOLE:
        return [lambda maker: maker.whole(*shape), lambda maker: maker.whole(3)]
    if word in _MASKS:
        return [lambda maker: maker.mask(*shape)]
    if word == "target":
        return [lambda maker: maker.floats(*shape), lambda maker: maker.whole(shape[0] if shape else 1)]
    return [lambda maker: maker.whole(*shape) if is_whole else maker.floats(*shape)]


def _constant(value: Any) -> Callable[[Maker], Any]:
    return lambda _: list(value) if isinstance(value, list) else value


def _call(parts: tuple[Callable[[Maker], Any], ...]) -> Call:
    return lambda maker: tuple(part(maker) for part in parts)
