"""Whether a choice is made, step by step, among the parts of a container, or some are used always and others never."""

from __future__ import annotations

import weakref
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEAST = 2  # parts that are used always, beside one that never is: of two parts one may have been chosen for good


def siblings(above: list[Any], parameter: Any) -> list[Siblings]:
    """For each container on the way ABOVE (modules, the root first) down to an idle PARAMETER, whose part on that way
    has learned nothing: its other parts of that class, if any has learned.
    """
    import torch

    found = []
    for holder, part in pairwise(above):
        if isinstance(holder, (torch.nn.ModuleList, torch.nn.ModuleDict)) and _learning(part) is None:
            found.append(Siblings([each for each in holder._modules.values() if type(each) is type(part)]))
    if isinstance(above[-1], (torch.nn.ParameterList, torch.nn.ParameterDict)) and parameter.grad is None:
        found.append(Siblings([each for _, each in above[-1].named_parameters(recurse=False)]))
    return [each for each in found if each.used]


class Siblings:
    """Parts of one class in one container, or parameters. used: those that had learned when the look began."""

    def __init__(self, parts: list[Any]) -> None:
        used = [(part, own) for part in parts if (own := _learning(part)) is not None]
        self.used = [(weakref.ref(part), weakref.ref(own)) for part, own in used]
        self.few = len(used) < _LEAST or 2 * len(used) < len(parts)
        self.kind = type(parts[0])
        self.sizes: dict[int, list[int]] = {id(part): [] for part, _ in used}

    def called(self, module: Any, inputs: Any) -> None:
        """A module of their class runs on INPUTS: routing gives each part some rows, a series of parts all of them."""
        if id(module) in self.sizes:
            shape: Any = next((each.shape for each in inputs if hasattr(each, "shape")), ())
            self.sizes[id(module)].append(int(shape[0]) if len(shape) else 1)

    def chosen(self, *, closely: bool) -> bool:
        """Whether the step that has ended tells of a choice: not all were used, or not all alike."""
        if self.few or not all(_has_gradient(own(), closely=closely) for _, own in self.used):
            return True
        sizes = list(self.sizes.values())
        self.sizes = {key: [] for key in self.sizes}
        return any(each != sizes[0] for each in sizes)


def _learning(part: Any) -> Any:
    """A parameter of PART, or PART itself, that has a gradient."""
    return next((each for each in _parameters(part) if each.grad is not None), None)


def _parameters(part: Any) -> Iterator[Any]:
    return part.parameters() if hasattr(part, "parameters") else iter((part,))


def _has_gradient(parameter: Any, *, closely: bool) -> bool:
    """A gradient of zeros is none, where the script clears to zero: asked on the CPU only, and CLOSELY only."""
    grad = None if parameter is None else parameter.grad
    return grad is not None and not (closely and grad.device.type == "cpu" and not bool(grad.any()))
