"""A function of tensors at a point: what it gives, its gradients by backward, and weights for its outputs."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Tensors = list[Any]
SEED = 20240


def settle(seed: int = SEED) -> None:
    """Whatever the function draws, it draws the same each time."""
    import torch

    torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


class Problem:
    """function: takes tensors such as VALUES and gives a list of tensors. NAMES: of the values, as a reader knows them.

    numbers: the position of each value among the arguments, from 0.
    """

    def __init__(
        self,
        function: Callable[[Tensors], Tensors],
        values: Sequence[Any],
        names: Sequence[str],
        numbers: Sequence[int] | None = None,
    ) -> None:
        self.function, self.values, self.names = function, list(values), list(names)
        self.numbers = list(numbers) if numbers is not None else list(range(len(self.values)))

    def outputs(self, values: Sequence[Any] | None = None) -> Tensors:
        """What the function gives at VALUES (else at the point), as numbers without a graph."""
        import torch

        with torch.no_grad():
            settle()
            given = [each.detach().clone() for each in (self.values if values is None else values)]
            return [each.detach().clone() for each in self.function(given)]  # it may be a buffer of theirs

    def traced(self, wanted: Sequence[int] | None = None, arrange: Callable[[Any], Any] | None = None) -> Traced:
        """One forward pass with a graph. WANTED: which values need a gradient. ARRANGE: how a value lies in memory.

        The function is given copies, never leaves: it may work in place.
        """
        wanted = range(len(self.values)) if wanted is None else wanted
        roots = [each.detach().clone().requires_grad_(place in wanted) for place, each in enumerate(self.values)]
        settle()
        given = [arrange(each) if arrange else each.clone() for each in roots]
        return Traced(roots, given, self.function(given))

    def gradients(self, weights: Sequence[Any], wanted: Sequence[int] | None = None, **more: Any) -> Tensors:
        """By backward, one for each value; None where there is none."""
        return self.traced(wanted).gradients(weights, **more)


class Traced:
    """One forward pass: the leaves, what the function was given, and what came out.

    sparse: a gradient of this pass was.
    """

    def __init__(self, roots: Tensors, given: Tensors, outputs: Tensors) -> None:
        self.roots, self.given, self.outputs = roots, given, outputs
        self.sparse = False

    def gradients(self, weights: Sequence[Any], *, as_they_are: bool = False, **more: Any) -> Tensors:
        """Gradients of the outputs' sum with WEIGHTS, None among which is an output that is not used.

        Backward is given copies, unless AS_THEY_ARE.
        """
        import torch

        given = weights if as_they_are else [None if each is None else each.clone() for each in weights]
        pairs = [(out, by) for out, by in zip(self.outputs, given, strict=True) if out.requires_grad and by is not None]
        roots = [each for each in self.roots if each.requires_grad]
        if not pairs or not roots:
            return [None] * len(self.roots)
        outs, by = zip(*pairs, strict=True)
        made = torch.autograd.grad(outs, roots, by, allow_unused=True, **more)
        self.sparse = any(dense(each) is not each for each in made)
        found = iter(made)
        return [dense(next(found)) if each.requires_grad else None for each in self.roots]


def dense(gradient: Any) -> Any:
    """A sparse gradient, as of rows that were looked up, with its zeros; any other as it is."""
    import torch

    return gradient if gradient is None or gradient.layout == torch.strided else gradient.to_dense()


def weights(outputs: Sequence[Any], seed: int = 0, scale: float = 1.0) -> Tensors:
    """Random weights for OUTPUTS, of their shapes: with them no entry of a wrong gradient cancels another."""
    import torch

    source = torch.Generator().manual_seed(SEED + seed)
    made = []
    for each in outputs:
        wide = torch.complex128 if each.is_complex() else torch.float64
        drawn = torch.randn(each.shape, generator=source, dtype=wide)
        away = drawn + (0.25 * torch.sgn(drawn))  # away from 0, where nothing would be seen
        made.append((away * scale).to(each.dtype).to(each.device))
    return made


def drawn() -> tuple[Any, ...]:
    """The states of the random generators that a function may draw from."""
    import torch

    numpy = sys.modules.get("numpy")
    ours = numpy.random.get_state(legacy=False) if numpy is not None else None
    return bytes(torch.get_rng_state().tolist()), random.getstate(), repr(ours)


def flat(tensor: Any) -> Any:
    """The numbers of a tensor in a row, a complex one as two; float64."""
    import torch

    plain = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
    return plain.detach().to(torch.float64).reshape(-1)


def differ(one: Sequence[Any], two: Sequence[Any], tolerance: float = 1e-7, floor: float = 1e-30) -> int | None:
    """The first place at which two lists of gradients differ by more than TOLERANCE of the largest number; or None.

    FLOOR: what is taken for the largest number where all are smaller, as of sums that cancel.
    """
    import torch

    for place, (a, b) in enumerate(zip(one, two, strict=True)):
        if a is None and b is None:
            continue
        if a is None or b is None:
            if any(each is not None and bool(flat(each).any()) for each in (a, b)):
                return place
            continue
        if a.shape != b.shape:
            return place
        x, y = flat(a), flat(b)
        if not x.numel():
            continue
        bound = tolerance * max(float(torch.nan_to_num(y.abs()).max()), floor)
        unlike = ((x - y).abs() > bound) | (x.isnan() != y.isnan())
        if bool(unlike.any()):
            return place
    return None


def worst(one: Any, two: Any) -> tuple[list[int], float, float]:
    """Where two tensors of one shape differ most, and both numbers there."""
    import torch

    x, y = flat(one), flat(two)
    place = int(torch.nan_to_num((x - y).abs(), nan=float("inf")).argmax())
    return where(place, one), float(x[place]), float(y[place])


def where(place: int, tensor: Any) -> list[int]:
    """The index of the number at PLACE in a row."""
    shape = (*tensor.shape, 2) if tensor.is_complex() else tuple(tensor.shape)
    index: list[int] = []
    for size in reversed(shape):
        place, at = divmod(place, size)
        index.insert(0, at)
    return index
