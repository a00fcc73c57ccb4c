"""The same numbers, laid out in other ways in memory: transposed, in steps, expanded, a part of something larger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .problem import Problem, differ
from .refusing import said
from .results import Base, Result, absent, right, unseen, wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def transposed(tensor: Any) -> Any:
    """The same shape and numbers with strides the other way round; of one dimension, every second place is taken."""
    import torch

    if tensor.dim() >= 2:
        order = list(reversed(range(tensor.dim())))
        return tensor.permute(order).clone(memory_format=torch.contiguous_format).permute(order)
    return torch.stack([tensor, tensor], -1)[..., 0] if tensor.dim() else tensor.clone()


def offset(tensor: Any) -> Any:
    """The same, as a slice of a longer row: its storage begins elsewhere."""
    import torch

    row = torch.cat([tensor.new_zeros(3), tensor.reshape(-1), tensor.new_zeros(2)])
    return row[3:-2].view(tensor.shape)


LAYOUTS: dict[str, Callable[[Any], Any]] = {"transposed": transposed, "offset": offset}
NAMED = {"transposed": "not contiguous", "offset": "a slice of a larger tensor"}


def grad_output(base: Base) -> Result:
    """Whatever the layout of the gradient that comes in: transposed, sliced, or one number expanded, as by sum()."""
    import torch

    for name, arrange in LAYOUTS.items():
        laid = [None if each is None else arrange(each) for each in base.weights]
        told = _unlike(base, laid, base.gradients, f"with a grad_output that is {NAMED[name]}")
        if told:
            return told
    ones = [None if each is None else torch.ones_like(each) for each in base.weights]
    wide = [None if each is None else torch.ones((), dtype=each.dtype).expand(each.shape) for each in base.weights]
    known = base.problem.gradients(ones)
    return _unlike(base, wide, known, "with an expanded grad_output, as sum() gives it") or right()


def _unlike(base: Base, laid: list[Any], known: list[Any], words: str) -> Result | None:
    try:
        found = base.problem.gradients(laid, as_they_are=True)
    except Exception as error:  # noqa: BLE001 - the user's backward raised it
        return wrong(f"{words}, it raises {said(error)}")
    return base.unlike(found, words, known)


def inputs(base: Base) -> Result:
    """Whatever the layout of the inputs."""
    if not any(each.dim() for each in base.problem.values):
        return absent("no input has a dimension")
    if base.is_random:
        return absent("what it draws goes by the layout")
    traced = base.problem.traced()
    traced.gradients(base.weights)
    if traced.sparse:
        return absent("torch takes no sparse gradient back through a view")
    told = [_laid(base, f"with inputs that are {NAMED[name]}", arrange) for name, arrange in LAYOUTS.items()]
    told.append(_expanded(base))
    found = [each for each in told if each is not None]
    return next((each for each in found if each["state"] == "wrong"), next(iter(found), right()))


def _laid(base: Base, words: str, arrange: Callable[[Any], Any]) -> Result | None:
    try:
        traced = base.problem.traced(arrange=arrange)
    except Exception as error:  # noqa: BLE001 - a loud refusal is no wrong gradient
        do = "Call .contiguous() in forward where it needs that, or .reshape for .view."
        return unseen(f"{words}, forward raises {said(error)}", do)
    if differ(traced.outputs, base.outputs, base.same) is not None:
        return wrong(f"{words}, forward gives other values", "forward")
    try:
        found = traced.gradients(base.weights)
    except Exception as error:  # noqa: BLE001 - the user's backward raised it
        return wrong(f"{words}, it raises {said(error)}")
    return base.unlike(found, words)


def _expanded(base: Base) -> Result | None:
    """One input at a time is one slice of itself, expanded: many places, one number.

    Of Functions alone: what torch itself does with such an input (batch_norm with an expanded weight) is not theirs.
    """
    if base.subject.own is None:
        return None
    for place, value in enumerate(base.problem.values):
        for dim in sorted({0, value.dim() - 1}) if value.dim() else ():
            told = _of_slice(base, place, dim) if value.shape[dim] > 1 and base.gradients[place] is not None else None
            if told:
                return told
    return None


def _of_slice(base: Base, place: int, dim: int) -> Result | None:
    value = base.problem.values[place]
    values = [*base.problem.values[:place], value.narrow(dim, 0, 1).clone(), *base.problem.values[place + 1 :]]
    wide, dense = (
        Problem(
            _with(base.problem, place, value.shape, copied=copied), values, base.problem.names, base.problem.numbers
        )
        for copied in (False, True)
    )
    try:
        known = dense.gradients(base.weights)
        traced = wide.traced()
    except Exception:  # noqa: BLE001 - equal slices need not be in its domain, and in place it cannot be
        return None
    if known[place] is None:
        return None
    words = f"with {base.problem.names[place]} expanded along dimension {dim}"
    try:
        found = traced.gradients(base.weights)
    except Exception as error:  # noqa: BLE001 - the user's backward raised it
        return wrong(f"{words}, it raises {said(error)}")
    return base.unlike(found, words, known)


def _with(problem: Problem, place: int, shape: Any, *, copied: bool) -> Callable[[list[Any]], list[Any]]:
    def function(tensors: list[Any]) -> list[Any]:
        wide = tensors[place].expand(shape)
        return problem.function([*tensors[:place], wide.clone() if copied else wide, *tensors[place + 1 :]])

    return function


def smaller(base: Base) -> Iterator[tuple[str, Problem]]:
    """Where all inputs and outputs have one shape: each of them once in a shape that is broadcast to it."""
    values = base.problem.values
    shapes = {tuple(each.shape) for each in [*values, *base.outputs]}
    if base.is_random or len(values) < 2 or len(shapes) != 1 or not values[0].dim() or min(values[0].shape) < 1:
        return
    for place, value in enumerate(values):
        for words, part in (
            ("its first row", value[:1]),
            ("its last column", value[..., -1:]),
            ("one row of it", value[0]),
        ):
            if part.shape != value.shape:
                made = [*values[:place], part.clone().contiguous(), *values[place + 1 :]]
                problem = Problem(base.problem.function, made, base.problem.names, base.problem.numbers)
                yield f"with {base.problem.names[place]} broadcast ({words})", problem
